// The geometry of Conv and its implementations: oneDNN with reorders from and to the plain layout, matrix products over
// unfolded input, for few outputs products by kernel position or with weights as they lie, and direct loops for
// depthwise convolution.
#pragma once

#include <cstdint>
#include <memory>

#include "backends/cpu/plain_window.h"

namespace asc::cpu {

struct ConvShape : PlainWindow {
  int64_t batch = 0, channels = 0, out_channels = 0, groups = 1;
  bool has_bias = false;
  bool is_last = false;        // channels lie last in input and output
  bool is_transposed = false;  // of ConvTranspose: the windows are those of its output, `input`

  int64_t group_channels() const { return channels / groups; }
  int64_t group_outputs() const { return out_channels / groups; }
  // Positions of what is read and of what is made.
  int64_t read_size() const { return is_transposed ? output_size() : input_size(); }
  int64_t made_size() const { return is_transposed ? input_size() : output_size(); }
  // Products that one output is the sum of.
  int64_t depth() const { return group_channels() * kernel_size(); }
  double operations() const {
    return 2.0 * static_cast<double>(batch * out_channels) * static_cast<double>(output_size()) *
           static_cast<double>(depth());
  }
  bool is_depthwise() const { return groups > 1 && group_channels() == 1; }
  // A matrix product of weight and input as they lie.
  bool is_pointwise() const;
};

ConvShape make_conv_shape(const TilingContext& ctx);
// Of a transposed one over `x`, [batch, channels, spatial...].
ConvShape make_spreading_shape(const TilingContext& ctx, const Shape& x);

// For float32 and float64; `threads`: that a launch may use.
template <typename T>
std::shared_ptr<const Tiling> tile_column_conv(const ConvShape& shape, int threads);
template <typename T>
std::shared_ptr<const Tiling> tile_depthwise_conv(const ConvShape& shape);
// Of a transposed one.
template <typename T>
std::shared_ptr<const Tiling> tile_fold_conv(const ConvShape& shape);

// Float32: whether weights are constant and outputs so few that products by kernel position are the quickest; those.
bool wants_float_taps(const TilingContext& ctx, const ConvShape& shape);
std::shared_ptr<const Tiling> tile_float_taps(const ConvShape& shape);

// Float32: whether there is one channel along one axis, and products of the signal as it lies are the quickest; those.
bool wants_signal(const TilingContext& ctx, const ConvShape& shape);
std::shared_ptr<const Tiling> tile_signal(const ConvShape& shape);

// Float32: whether weights are fed and outputs so few that dot products with weights as they lie are the quickest;
// those.
bool wants_dots(const TilingContext& ctx, const ConvShape& shape);
std::shared_ptr<const Tiling> tile_dots(const ConvShape& shape, int threads);

// Float32, or with bfloat16 weights; null where oneDNN is absent, refuses, or has reference code only.
std::shared_ptr<const Tiling> try_onednn_conv(const TilingContext& ctx, const ConvShape& shape);

}  // namespace asc::cpu
