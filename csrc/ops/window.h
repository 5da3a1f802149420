// The geometry of sliding windows, resolved once for convolutions and pooling: their rules and kernels share it.
#pragma once

#include "ops/op.h"

namespace asc {

constexpr int kMaxSpatial = kMaxRank - 2;

struct WindowGeometry {
  int spatial = 0;  // axes 2, 3, … of the input
  int64_t kernel[kMaxSpatial], stride[kMaxSpatial], dilation[kMaxSpatial];
  int64_t pad_begin[kMaxSpatial], pad_end[kMaxSpatial];  // never negative; auto_pad resolved
  int64_t output[kMaxSpatial];
};

// Windows of size `kernel` (x.rank() - 2 entries) over `x`, from the attributes strides, dilations, pads, auto_pad and,
// for pooling, ceil_mode. Throws GraphError for malformed attributes and for windows larger than the padded input.
WindowGeometry window_geometry(const ShapeContext& ctx, const Shape& x, const int64_t* kernel, bool is_pooling);

// The same for ConvTranspose, which spreads every element of `x` over a window of the output: pads are cut off the
// output, so that they may lie beyond it. From the attributes above and output_padding and output_shape.
WindowGeometry transposed_geometry(const ShapeContext& ctx, const Shape& x, const int64_t* kernel);

// Throws GraphError where the attribute kernel_shape is given, and is not what the weight `w` has from axis 2 on.
void check_kernel_shape(const ShapeContext& ctx, const Shape& w);

}  // namespace asc
