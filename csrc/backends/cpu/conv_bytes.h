// Convolution of bytes, channels last (ops/quantized.h), and its implementations: oneDNN, and products of unfolded
// rows.
#pragma once

#include <cstdint>
#include <memory>

#include "backends/cpu/conv.h"
#include "backends/cpu/quantize.h"
#include "ops/quantized.h"

namespace asc::cpu {

struct ByteConv {
  ConvShape shape;
  DType x_type = DType::kUInt8, w_type = DType::kInt8, y_type = DType::kUInt8;
  bool has_x_zero = false, has_w_zeros = false, has_y_zero = false;
  bool has_column_zeros = false;  // one zero point for each output channel
  int64_t scales = 0;             // 0: y is the sums; 1, or one for each output channel
  float low, high;                // bounds of real results

  // In floating-point operations that take as long: four products of bytes do, but for depthwise convolutions.
  double operations() const { return shape.operations() / (shape.is_depthwise() ? 1 : 4); }
  bool rounds() const { return size_of(y_type) == 1; }
  bool has_bounds() const;
};

// y = n results, bounded and rounded as the node asks for; overwrites them.
void store_reals(const ByteConv& conv, float* reals, float y_scale, int32_t y_zero, void* y, int64_t n);

ByteConv make_byte_conv(const TilingContext& ctx);

// Null where oneDNN is absent, has reference code only, or would not be exact on this CPU.
std::shared_ptr<const Tiling> try_onednn_conv(const TilingContext& ctx, const ByteConv& conv);
// `threads`: that a launch may use.
std::shared_ptr<const Tiling> tile_tap_conv(const ByteConv& conv, int threads);  // one channel per group, with scales
std::shared_ptr<const Tiling> tile_row_conv(const ByteConv& conv, int threads);

}  // namespace asc::cpu
