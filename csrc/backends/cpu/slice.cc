// Slice: one strided copy, negative steps included.
#include <algorithm>

#include "backends/cpu/copy_nest.h"
#include "backends/cpu/movement.h"

namespace asc::cpu {
namespace {

struct AxisSlice {
  int64_t start = 0, step = 1;
};

// Start of the slice after the clamping that ONNX prescribes.
int64_t clamp_start(int64_t start, int64_t step, int64_t n) {
  if (start < 0) start += n;
  return step > 0 ? std::clamp<int64_t>(start, 0, n) : std::clamp<int64_t>(start, 0, std::max<int64_t>(n - 1, 0));
}

void read_slices(const TilingContext& ctx, const Shape& x, AxisSlice* slices) {
  int64_t starts[kMaxRank], axes[kMaxRank], steps[kMaxRank];
  const int count = read_ints(ctx, 1, starts, kMaxRank);
  for (int i = 0; i < count; ++i) {
    axes[i] = i;
    steps[i] = 1;
  }
  if (ctx.has_input(3) && read_ints(ctx, 3, axes, kMaxRank) != count)
    fail_tiling(ctx, "starts and axes differ in length; check the model");
  if (ctx.has_input(4) && read_ints(ctx, 4, steps, kMaxRank) != count)
    fail_tiling(ctx, "starts and steps differ in length; check the model");
  for (int i = 0; i < count; ++i) {
    const int axis = checked_axis(ctx, axes[i], x.rank());
    if (steps[i] == 0) fail_tiling(ctx, "step 0 on axis " + std::to_string(axis) + "; use a non-zero step");
    slices[axis] = {clamp_start(starts[i], steps[i], x[axis]), steps[i]};
  }
}

std::shared_ptr<const Tiling> tile_slice(const TilingContext& ctx) {
  const Shape& x = ctx.input(0);
  const Shape& y = ctx.output(0);
  AxisSlice slices[kMaxRank];
  read_slices(ctx, x, slices);
  int64_t in_strides[kMaxRank], out_strides[kMaxRank];
  int64_t in_stride = 1, out_stride = 1, offset = 0;
  for (int i = x.rank() - 1; i >= 0; --i) {
    // One element takes no step; a huge step must not overflow.
    const int64_t step = y[i] > 1 ? slices[i].step : 0;
    const int64_t last = slices[i].start + (y[i] - 1) * step;
    if (y[i] > 0 && (slices[i].start >= x[i] || last < 0 || last >= x[i]))
      fail_tiling(ctx, "slice of axis " + std::to_string(i) + " leaves the input " + x.text() + "; check the model");
    in_strides[i] = in_stride * step;
    out_strides[i] = out_stride;
    offset += slices[i].start * in_stride;
    in_stride *= x[i];
    out_stride *= y[i];
  }
  CopyNest nest(size_of(ctx.dtype(0)));
  nest.set_in_offset(offset);
  for (int i = 0; i < x.rank(); ++i) nest.add(y[i], in_strides[i], out_strides[i]);
  return nest.create_copy_tiling();
}

}  // namespace

void register_slice(KernelRegistry& registry) { registry.add("Slice", kAnyType, tile_slice); }

}  // namespace asc::cpu
