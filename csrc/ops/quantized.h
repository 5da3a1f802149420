// Nodes that multiply bytes and scale, shift, bound and round the sums in one go, and pooling of bytes.
// plan/quantized.cc makes them out of checked nodes. Models cannot name them: the registry does not know the operators.
#pragma once

#include "ops/channels_last.h"

namespace asc {

// Inputs of QuantizedConv and QuantizedMatMul. Their meaning, with sums in 32 bits that wrap around:
//   real = sum((x - x_zero) * (w - w_zero)) * scale + bias, bounded by the attributes low and high
//   y = real, or round(real / y_scale) + y_zero inside the range of its type
// Without a scale, y is the sum. Zero points are one number each, that of w one number or one per output channel or
// column; so is the scale. The bias has one number per output channel or column. Absent: 0.
enum QuantizedInput : int {
  kQuantX,
  kQuantW,
  kQuantXZero,
  kQuantWZero,
  kQuantScale,
  kQuantBias,
  kQuantYScale,
  kQuantYZero
};
constexpr int kQuantInputs = 8;

// x [n, spatial..., c] -> [n, spatial..., m], channels last; w [m, c / group, kernel...] as in Conv, whose attributes
// it has; the weights are constant, and so are their zero points.
const Op& quantized_conv_op();
// x [..., m, k], w [..., k, n], as in MatMul.
const Op& quantized_matmul_op();

// Inputs: x [n, spatial..., c], then scale and zero point of x, scale and zero point of y (averages only; bytes in,
// bytes out). Attributes: those of MaxPool and AveragePool, "mode": max, average or global.
const Op& byte_pool_op();

}  // namespace asc
