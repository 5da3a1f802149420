// What the kernels of Resize share: where an output position of one axis lies in the input.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/cpu/tiling_base.h"
#include "ops/resize.h"

namespace asc::cpu {

enum class ResizeMode : uint8_t { kNearest, kLinear, kCubic };

// The attributes of the node. Throws GraphError for unknown names.
struct ResizeRules {
  ResizeMode mode = ResizeMode::kNearest;
  bool uses_antialias = false, excludes_outside = false, crops = false;
  float cubic_coefficient = -0.75f, extrapolation = 0;
  int64_t (*round)(float) = nullptr;                          // of nearest
  float (*coordinate)(const ResizeAxis&, int64_t) = nullptr;  // of an output position, in the input
};
ResizeRules make_resize_rules(const TilingContext& ctx);

// Whether every output position of the axis is the input position of the same number.
bool is_identity(const ResizeRules& rules, const ResizeAxis& axis);

// The input position of each output position; -1 outside the region of interest's input.
std::vector<int64_t> nearest_positions(const ResizeRules& rules, const ResizeAxis& axis);

// Output position i is the sum over k < taps of weight[i * taps + k] * input[index[i * taps + k]].
struct AxisTaps {
  int64_t in = 0, out = 0, taps = 0;
  std::vector<int64_t> index;
  std::vector<float> weight;
  std::vector<int64_t> outside;  // output positions that get the extrapolation value
};
AxisTaps make_axis_taps(const ResizeRules& rules, const ResizeAxis& axis);

std::shared_ptr<const Tiling> tile_nearest_resize(const TilingContext& ctx, const ResizeRules& rules,
                                                  const ResizeGeometry& geometry);
// Linear and cubic.
std::shared_ptr<const Tiling> tile_filter_resize(const TilingContext& ctx, const ResizeRules& rules,
                                                 const ResizeGeometry& geometry);

}  // namespace asc::cpu
