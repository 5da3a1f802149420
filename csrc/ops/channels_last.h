// Convolution and pooling of tensors whose channels lie last, [n, spatial..., c]: one position is one row. The plan
// makes them out of checked nodes (plan/channels_last.cc). Models cannot name them: the registry does not know them.
#pragma once

#include "ops/op.h"

namespace asc {

// x [n, spatial..., c], w [m, c / group, kernel...], bias [m] -> [n, spatial..., m]; attributes of Conv.
const Op& conv_last_op();
// x [n, spatial..., c], w [c, m / group, kernel...], bias [m] -> [n, spatial..., m]; attributes of ConvTranspose.
const Op& conv_transpose_last_op();
// Attributes of MaxPool and AveragePool, and "mode": max, average or global.
const Op& pool_last_op();

// Their rules, for x and w as inputs 0 and 1.
void infer_conv_last(InferContext& ctx);
void infer_conv_transpose_last(InferContext& ctx);
void infer_pool_last(InferContext& ctx);

// The shape of channels-last x with channels first: [n, c, spatial...].
Shape channels_first(const Shape& x);

}  // namespace asc
