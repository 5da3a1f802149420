// Sliding windows over plain (batch, channels, spatial) tensors, with the spatial axes padded to three: what
// convolution and pooling share.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/tiling_base.h"

namespace asc::cpu {

constexpr int kWindowAxes = 3;  // depth, height, width; missing leading axes have size 1

struct PlainWindow {
  int spatial = 0;  // axes that the node has
  int64_t input[kWindowAxes], output[kWindowAxes], kernel[kWindowAxes], stride[kWindowAxes], dilation[kWindowAxes];
  int64_t pad_begin[kWindowAxes], pad_end[kWindowAxes];

  int64_t input_size() const { return input[0] * input[1] * input[2]; }
  int64_t output_size() const { return output[0] * output[1] * output[2]; }
  int64_t kernel_size() const { return kernel[0] * kernel[1] * kernel[2]; }
  bool has_padding() const {
    for (int i = 0; i < kWindowAxes; ++i)
      if (pad_begin[i] != 0 || pad_end[i] != 0) return true;
    return false;
  }
  // Input position that kernel position `k` of output `o` sees; outside [0, input) in the padding.
  int64_t position(int axis, int64_t o, int64_t k) const {
    return o * stride[axis] - pad_begin[axis] + k * dilation[axis];
  }
  bool is_inside(int axis, int64_t position) const { return position >= 0 && position < input[axis]; }
};

// From the attributes of the node; `kernel` has one entry per spatial axis of input 0. Throws UnsupportedError for more
// than three spatial axes.
PlainWindow make_plain_window(const TilingContext& ctx, const int64_t* kernel, bool is_pooling);
// The same over `x`, [batch, channels, spatial...], whatever the layout of input 0.
PlainWindow make_window_over(const TilingContext& ctx, const Shape& x, const int64_t* kernel, bool is_pooling);

// Drops axes at the end of which windows see one position: the tensors lie the same without them, and lines are long.
void drop_single_axes(PlainWindow& w);

// The windows of pooling nodes on channels-last tensors (ops/channels_last.h): with mode "global", one over everything,
// which lies as lines that the first-level cache holds, of one position where no such lines fill it.
PlainWindow make_row_window(const TilingContext& ctx, const Shape& x);

// The windows of ConvTranspose over `x`, [batch, channels, spatial...], seen from its output: `input` is the output of
// the node, `output` its input 0.
PlainWindow make_spreading_window(const TilingContext& ctx, const Shape& x, const int64_t* kernel);

struct IndexRange {
  int64_t low, high;  // [low, high), low <= high
};
// The outputs of one line that see kernel position `k` of the width axis inside the input, among `outputs` outputs
// from `begin` on; counted from `begin`.
IndexRange inside_line(const PlainWindow& w, int64_t begin, int64_t outputs, int64_t k);
// The kernel positions that output `o` of an axis sees inside [from, to).
IndexRange inside_kernel(const PlainWindow& w, int axis, int64_t o, int64_t from, int64_t to);
// The same for the input itself.
inline IndexRange inside_kernel(const PlainWindow& w, int axis, int64_t o) {
  return inside_kernel(w, axis, o, 0, w.input[axis]);
}

// Kernel positions inside the input, or inside the padded input, for each output of an axis: what averages count.
std::vector<int64_t> count_positions(const PlainWindow& w, int axis, bool includes_padding);

}  // namespace asc::cpu
