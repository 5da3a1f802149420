// Resize: attributes and coordinates. Coordinates are float32, as in onnxruntime, so that nearest picks the same
// elements.
#include "backends/cpu/resize.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/image.h"

namespace asc::cpu {
namespace {

float half_pixel(const ResizeAxis& a, int64_t i) { return (static_cast<float>(i) + 0.5f) / a.scale - 0.5f; }

float pytorch_half_pixel(const ResizeAxis& a, int64_t i) { return a.out > 1 ? half_pixel(a, i) : 0.0f; }

// The output is centred on the input, where rounding its size has made it smaller than the scale says.
float half_pixel_symmetric(const ResizeAxis& a, int64_t i) {
  const float exact = a.scale * static_cast<float>(a.in);
  const float adjustment = static_cast<float>(a.out) / exact;
  const float offset = static_cast<float>(a.in) / 2.0f * (1.0f - adjustment);
  return offset + half_pixel(a, i);
}

float asymmetric(const ResizeAxis& a, int64_t i) { return static_cast<float>(i) / a.scale; }

float align_corners(const ResizeAxis& a, int64_t i) {
  return a.out == 1 ? 0.0f : static_cast<float>(i) * static_cast<float>(a.in - 1) / static_cast<float>(a.out - 1);
}

float crop_and_resize(const ResizeAxis& a, int64_t i) {
  const auto last = static_cast<float>(a.in - 1);
  if (a.out <= 1) return 0.5f * (a.roi_begin + a.roi_end) * last;
  return a.roi_begin * last + static_cast<float>(i) * (a.roi_end - a.roi_begin) * last / static_cast<float>(a.out - 1);
}

// A coordinate far outside is as good as one just outside.
int64_t to_position(float rounded) { return static_cast<int64_t>(std::clamp(rounded, -1e15f, 1e15f)); }

int64_t round_floor(float x) { return to_position(std::floor(x)); }
int64_t round_ceil(float x) { return to_position(std::ceil(x)); }
int64_t round_prefer_floor(float x) { return to_position(x == std::floor(x) + 0.5f ? std::floor(x) : std::round(x)); }
int64_t round_prefer_ceil(float x) { return to_position(x == std::floor(x) + 0.5f ? std::ceil(x) : std::round(x)); }

template <typename T>
struct Named {
  const char* name;
  T value;
};

template <typename T, size_t n>
T find_named(const TilingContext& ctx, const char* attribute, const char* fallback, const Named<T> (&table)[n]) {
  const std::string_view wanted = ctx.attributes().get_string(attribute, fallback);
  for (const Named<T>& entry : table)
    if (wanted == entry.name) return entry.value;
  fail_tiling(ctx, std::string(attribute) + " is '" + std::string(wanted) + "'; use one that ONNX defines");
}

bool is_outside(const ResizeRules& r, const ResizeAxis& a, float x) {
  return r.crops && (x < 0 || x > static_cast<float>(a.in - 1));
}

float filter_of(const ResizeRules& r, float distance) {
  const float d = std::fabs(distance), a = r.cubic_coefficient;
  if (r.mode == ResizeMode::kLinear) return std::max(1.0f - d, 0.0f);
  if (d < 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0.0f;
}

// Weights of the taps around coordinate `x`: positions beyond the border repeat the border, or count nothing.
void set_taps(const ResizeRules& r, const ResizeAxis& a, float x, float radius, float stretch, AxisTaps* t, int64_t i) {
  int64_t* index = t->index.data() + i * t->taps;
  float* weight = t->weight.data() + i * t->taps;
  const int64_t first = to_position(std::floor(x - radius)) + 1;
  float sum = 0;
  for (int64_t k = 0; k < t->taps; ++k) {
    const int64_t position = first + k;
    const bool counts = (position >= 0 && position < a.in) || !r.excludes_outside;
    index[k] = std::clamp<int64_t>(position, 0, a.in - 1);
    weight[k] = counts ? filter_of(r, (static_cast<float>(position) - x) * stretch) : 0.0f;
    sum += weight[k];
  }
  const bool normalises = r.excludes_outside || stretch != 1.0f;
  for (int64_t k = 0; normalises && sum != 0 && k < t->taps; ++k) weight[k] /= sum;
}

std::shared_ptr<const Tiling> tile_resize(const TilingContext& ctx) {
  const ResizeRules rules = make_resize_rules(ctx);
  const ResizeGeometry g = resize_geometry(ctx);
  if (count_of(ctx.output(0)) == 0) return create_empty_tiling();
  return rules.mode == ResizeMode::kNearest ? tile_nearest_resize(ctx, rules, g) : tile_filter_resize(ctx, rules, g);
}

}  // namespace

ResizeRules make_resize_rules(const TilingContext& ctx) {
  static constexpr Named<ResizeMode> kModes[] = {
      {"nearest", ResizeMode::kNearest}, {"linear", ResizeMode::kLinear}, {"cubic", ResizeMode::kCubic}};
  static constexpr Named<int64_t (*)(float)> kRoundings[] = {{"round_prefer_floor", round_prefer_floor},
                                                             {"round_prefer_ceil", round_prefer_ceil},
                                                             {"floor", round_floor},
                                                             {"ceil", round_ceil}};
  static constexpr Named<float (*)(const ResizeAxis&, int64_t)> kCoordinates[] = {
      {"half_pixel", half_pixel},       {"half_pixel_symmetric", half_pixel_symmetric},
      {"asymmetric", asymmetric},       {"pytorch_half_pixel", pytorch_half_pixel},
      {"align_corners", align_corners}, {"tf_crop_and_resize", crop_and_resize}};
  ResizeRules r;
  r.mode = find_named(ctx, "mode", "nearest", kModes);
  r.round = find_named(ctx, "nearest_mode", "round_prefer_floor", kRoundings);
  r.coordinate = find_named(ctx, "coordinate_transformation_mode", "half_pixel", kCoordinates);
  r.uses_antialias = ctx.attr("antialias", 0) != 0;
  r.excludes_outside = ctx.attr("exclude_outside", 0) != 0;
  r.crops = crops_to_roi(ctx);
  r.cubic_coefficient = static_cast<float>(ctx.attributes().get_float("cubic_coeff_a", -0.75));
  r.extrapolation = static_cast<float>(ctx.attributes().get_float("extrapolation_value", 0.0));
  return r;
}

bool is_identity(const ResizeRules& r, const ResizeAxis& a) {
  return a.in == a.out && (r.crops ? a.roi_begin == 0.0f && a.roi_end == 1.0f : a.scale == 1.0f);
}

std::vector<int64_t> nearest_positions(const ResizeRules& r, const ResizeAxis& a) {
  std::vector<int64_t> positions(static_cast<size_t>(a.out));
  for (int64_t i = 0; i < a.out; ++i) {
    const float x = r.coordinate(a, i);
    positions[i] = is_outside(r, a, x) ? -1 : std::clamp<int64_t>(r.round(x), 0, a.in - 1);
  }
  return positions;
}

AxisTaps make_axis_taps(const ResizeRules& r, const ResizeAxis& a) {
  AxisTaps t;
  const float stretch = r.uses_antialias ? std::min(a.scale, 1.0f) : 1.0f;
  const float radius = (r.mode == ResizeMode::kLinear ? 1.0f : 2.0f) / stretch;
  t.in = a.in, t.out = a.out;
  t.taps = static_cast<int64_t>(std::ceil(2 * radius));
  t.index.resize(static_cast<size_t>(t.out * t.taps));
  t.weight.resize(static_cast<size_t>(t.out * t.taps));
  for (int64_t i = 0; i < a.out; ++i) {
    const float x = r.coordinate(a, i);
    if (is_outside(r, a, x)) t.outside.push_back(i);
    set_taps(r, a, x, radius, stretch, &t, i);
  }
  return t;
}

void register_resize(KernelRegistry& registry) { registry.add("Resize", kAnyType, tile_resize); }

}  // namespace asc::cpu
