// Clip: bounds are scalar tensors read at launch; either may be absent. NaN stays; where the bounds cross, the upper
// wins.
#include <limits>

#include "backends/cpu/elementwise.h"

namespace asc {
namespace {

struct ClipTiling : PlainTiling<ClipTiling> {
  size_t count = 0;
  VecTable::ParamUnary clip = nullptr;
  HalfCodec codec;
};

template <typename T>
T bound(const Task& task, void* const* slots, int input, T fallback) {
  return task.has_input(slots, input) ? *task.input<T>(slots, input) : fallback;
}

template <typename T>
Status launch_clip(const Task& task, void* const* slots, Worker&) {
  using Limits = std::numeric_limits<T>;
  const auto& t = *static_cast<const ClipTiling*>(task.tiling);
  const auto* x = task.input<T>(slots, 0);
  auto* y = task.output<T>(slots, 0);
  const T low = bound<T>(task, slots, 1, Limits::has_infinity ? -Limits::infinity() : Limits::lowest());
  const T high = bound<T>(task, slots, 2, Limits::has_infinity ? Limits::infinity() : Limits::max());
  if constexpr (std::is_same_v<T, float>) {
    t.clip(x, y, t.count, low, high);
  } else {
    for (size_t i = 0; i < t.count; ++i) {
      const T raised = x[i] < low ? low : x[i];
      y[i] = raised > high ? high : raised;
    }
  }
  return Status::kOk;
}

Status launch_clip_half(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const ClipTiling*>(task.tiling);
  const auto* x = task.input<uint16_t>(slots, 0);
  auto* y = task.output<uint16_t>(slots, 0);
  float bounds[] = {-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity()};
  for (int i = 0; i < 2; ++i)
    if (task.has_input(slots, i + 1)) t.codec.widen(task.input<uint16_t>(slots, i + 1), bounds + i, 1);
  alignas(kAlignment) float chunk[kChunk];
  for (size_t i = 0; i < t.count; i += kChunk) {
    const size_t n = t.count - i < kChunk ? t.count - i : kChunk;
    t.codec.widen(x + i, chunk, n);
    t.clip(chunk, chunk, n, bounds[0], bounds[1]);
    t.codec.narrow(chunk, y + i, n);
  }
  return Status::kOk;
}

template <LaunchFn kLaunch>
std::shared_ptr<const Tiling> tile_clip(const TilingContext& ctx) {
  for (int i = 1; i <= 2; ++i)
    if (ctx.has_input(i) && ctx.input(i).num_elements() != 1)
      ctx.unsupported("a bound must be a scalar: got shape " + ctx.input(i).text());
  auto t = std::make_shared<ClipTiling>();
  t->launch = kLaunch;
  t->count = element_count(ctx.output(0));
  t->over_inputs = inputs_like_output(ctx) & 1;
  t->clip = vec_table().clip;
  const DType type = ctx.dtype(0);
  t->implementation = type == DType::kFloat64 || !is_float(type) ? "scalar" : "vector";
  if (kHalfFloats.contains(type)) t->codec = half_codec(type);
  return t;
}

}  // namespace

void register_clip_kernels(KernelRegistry& registry) {
  registry.add("Clip", kHalfFloats, tile_clip<launch_clip_half>);
  const auto add = [&](auto example) {
    using T = decltype(example);
    registry.add("Clip", dtype_of<T>(), tile_clip<launch_clip<T>>);
  };
  add(float{});
  add(double{});
  for_integers(add);
}

}  // namespace asc
