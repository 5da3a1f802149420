// GridSample over one to three spatial axes: each output position has taps, elements of the input with weights, on each
// axis; all channels use them.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "backends/cpu/image.h"
#include "backends/cpu/tiling_base.h"

namespace asc::cpu {
namespace {

constexpr int kAxes = 3;  // missing leading axes have size 1
enum class Interpolation : uint8_t { kNearest, kLinear, kCubic };
enum class Padding : uint8_t { kZeros, kBorder, kReflection };

struct GridTiling : TilingOf<GridTiling> {
  int64_t batch = 0, channels = 0, spatial = 0;
  int64_t input[kAxes] = {1, 1, 1};
  int64_t positions = 0;  // of the output, in each channel
  Interpolation mode = Interpolation::kLinear;
  Padding padding = Padding::kZeros;
  bool aligns_corners = false;
  int64_t input_size() const { return input[0] * input[1] * input[2]; }
};

template <typename G>
struct Taps {
  int count = 1;
  int64_t at[4] = {0, 0, 0, 0};  // -1: outside, a zero
  G weight[4] = {1, 0, 0, 0};
};

// Back and forth between low and high, which stay where they are.
template <typename G>
G reflect(G x, G low, G high) {
  const G range = high - low;
  if (!(range > 0)) return low;
  const G distance = x < low ? low - x : x - high;
  const G turns = std::floor(distance / range), rest = distance - turns * range;
  const bool is_even = std::fmod(turns, G{2}) == 0;
  return (x < low) == is_even ? low + rest : high - rest;
}

template <typename G>
class AxisSampler {
 public:
  AxisSampler(const GridTiling& t, int64_t size)
      : t_(t),
        size_(size),
        low_(t.aligns_corners ? G{0} : G(-0.5)),
        high_(low_ + G(size) - (t.aligns_corners ? 1 : 0)) {}

  Taps<G> find(G normal) const {
    G x = t_.aligns_corners ? (normal + 1) / 2 * G(size_ - 1) : ((normal + 1) * G(size_) - 1) / 2;
    if (t_.mode == Interpolation::kNearest) x = std::nearbyint(x);
    if (!(x >= low_ && x <= high_)) x = bring_inside(x);
    Taps<G> taps;
    if (t_.mode == Interpolation::kNearest) {
      taps.at[0] = element(static_cast<int64_t>(x));
      return taps;
    }
    const G floor = std::floor(x), part = x - floor;
    const auto first = static_cast<int64_t>(floor);
    if (t_.mode == Interpolation::kLinear) {
      taps.count = 2;
      taps.weight[0] = 1 - part, taps.weight[1] = part;
      for (int i = 0; i < 2; ++i) taps.at[i] = element(first + i);
      return taps;
    }
    taps.count = 4;
    for (int i = 0; i < 4; ++i) {
      taps.at[i] = element(first - 1 + i);
      taps.weight[i] = cubic(std::fabs(part - G(i - 1)));
    }
    return taps;
  }

 private:
  // The result fits an integer, also for infinities and NaN.
  G bring_inside(G x) const {
    constexpr G kFar = 1 << 30;
    x = x > -kFar ? x : -kFar;
    x = x < kFar ? x : kFar;
    if (t_.padding == Padding::kBorder) return std::clamp(x, G{0}, G(size_ - 1));
    if (t_.padding == Padding::kReflection) return reflect(x, low_, high_);
    return x;
  }

  int64_t element(int64_t at) const {
    if (at >= 0 && at < size_) return at;
    if (t_.padding == Padding::kZeros) return -1;
    if (t_.padding == Padding::kReflection) at = static_cast<int64_t>(reflect(G(at), low_, high_));
    return std::clamp<int64_t>(at, 0, size_ - 1);
  }

  static G cubic(G d) {
    constexpr G kA = -0.75;
    return d <= 1 ? ((kA + 2) * d - (kA + 3)) * d * d + 1 : ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA;
  }

  const GridTiling& t_;
  int64_t size_;
  G low_, high_;
};

template <typename T, typename G>
T sum_taps(const GridTiling& t, const T* plane, const Taps<G>* taps) {
  T sum = 0;
  for (int a = 0; a < taps[0].count; ++a)
    for (int b = 0; b < taps[1].count; ++b)
      for (int c = 0; c < taps[2].count; ++c) {
        if ((taps[0].at[a] | taps[1].at[b] | taps[2].at[c]) < 0) continue;
        const T x = plane[(taps[0].at[a] * t.input[1] + taps[1].at[b]) * t.input[2] + taps[2].at[c]];
        sum += x * static_cast<T>(taps[0].weight[a] * taps[1].weight[b] * taps[2].weight[c]);
      }
  return sum;
}

template <typename T, typename G>
Status launch_grid_sample(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const GridTiling*>(task.tiling);
  const T* x = task.input<T>(slots, 0);
  const G* grid = task.input<G>(slots, 1);
  T* y = task.output<T>(slots, 0);
  const AxisSampler<G> samplers[kAxes] = {{t, t.input[0]}, {t, t.input[1]}, {t, t.input[2]}};
  const int first = kAxes - static_cast<int>(t.spatial);
  for (int64_t n = 0; n < t.batch; ++n, x += t.channels * t.input_size(), y += t.channels * t.positions)
    for (int64_t p = 0; p < t.positions; ++p, grid += t.spatial) {
      Taps<G> taps[kAxes];
      for (int axis = first; axis < kAxes; ++axis) taps[axis] = samplers[axis].find(grid[kAxes - 1 - axis]);
      for (int64_t c = 0; c < t.channels; ++c) y[c * t.positions + p] = sum_taps(t, x + c * t.input_size(), taps);
    }
  return Status::kOk;
}

template <typename T>
LaunchFn find_launch(const TilingContext& ctx) {
  if (ctx.dtype(1) == DType::kFloat32) return launch_grid_sample<T, float>;
  if (ctx.dtype(1) == DType::kFloat64) return launch_grid_sample<T, double>;
  ctx.unsupported(std::string("the grid is ") + name_of(ctx.dtype(1)) + "; insert a Cast");
}

std::shared_ptr<const Tiling> tile_grid_sample(const TilingContext& ctx) {
  const Shape& x = ctx.input(0);
  const LaunchFn launch = ctx.dtype(0) == DType::kFloat64 ? find_launch<double>(ctx) : find_launch<float>(ctx);
  if (count_of(ctx.output(0)) == 0) return create_empty_tiling();
  auto t = create_tiling<GridTiling>(launch, "scalar:taps");
  t->batch = x[0], t->channels = x[1], t->spatial = x.rank() - 2;
  if (t->spatial > kAxes) ctx.unsupported("input " + x.text() + " has more than three spatial axes");
  for (int i = 0; i < t->spatial; ++i) t->input[kAxes - t->spatial + i] = x[2 + i];
  t->positions = ctx.output(0).span_of(2, ctx.output(0).rank());
  const std::string_view mode = ctx.attributes().get_string("mode", "linear");
  const std::string_view padding = ctx.attributes().get_string("padding_mode", "zeros");
  t->mode = mode == "nearest"  ? Interpolation::kNearest
            : mode == "linear" ? Interpolation::kLinear
                               : Interpolation::kCubic;
  t->padding = padding == "zeros" ? Padding::kZeros : padding == "border" ? Padding::kBorder : Padding::kReflection;
  t->aligns_corners = ctx.attr("align_corners", 0) != 0;
  return t;
}

}  // namespace

void register_grid_sample(KernelRegistry& registry) { registry.add("GridSample", kWideFloats, tile_grid_sample); }

}  // namespace asc::cpu
