// Expand and Tile: strided copies whose repeated loops have input stride 0.
#include "backends/cpu/copy_nest.h"
#include "backends/cpu/movement.h"

namespace asc::cpu {
namespace {

std::shared_ptr<const Tiling> tile_expand(const TilingContext& ctx) {
  const Shape& x = ctx.input(0);
  const Shape& y = ctx.output(0);
  const int lead = y.rank() - x.rank();
  int64_t in_strides[kMaxRank], out_strides[kMaxRank];
  int64_t in_stride = 1, out_stride = 1;
  for (int i = y.rank() - 1; i >= 0; --i) {
    const int64_t n = i >= lead ? x[i - lead] : 1;
    if (n != 1 && n != y[i])
      fail_tiling(ctx, x.text() + " does not broadcast to " + y.text() + "; check the requested shape");
    in_strides[i] = n == 1 ? 0 : in_stride;
    out_strides[i] = out_stride;
    in_stride *= n;
    out_stride *= y[i];
  }
  CopyNest nest(size_of(ctx.dtype(0)));
  for (int i = 0; i < y.rank(); ++i) nest.add(y[i], in_strides[i], out_strides[i]);
  return nest.create_copy_tiling();
}

// Each dimension becomes two loops: the repeats, then the input's elements.
std::shared_ptr<const Tiling> tile_tile(const TilingContext& ctx) {
  const Shape& x = ctx.input(0);
  const Shape& y = ctx.output(0);
  int64_t in_strides[kMaxRank], out_strides[kMaxRank];
  int64_t in_stride = 1, out_stride = 1;
  for (int i = x.rank() - 1; i >= 0; --i) {
    in_strides[i] = in_stride;
    out_strides[i] = out_stride;
    in_stride *= x[i];
    out_stride *= y[i];
  }
  CopyNest nest(size_of(ctx.dtype(0)));
  for (int i = 0; i < x.rank(); ++i) {
    nest.add(x[i] > 0 ? y[i] / x[i] : 0, 0, out_strides[i] * x[i]);
    nest.add(x[i], in_strides[i], out_strides[i]);
  }
  return nest.create_copy_tiling();
}

}  // namespace

void register_expand(KernelRegistry& registry) {
  registry.add("Expand", kAnyType, tile_expand);
  registry.add("Tile", kAnyType, tile_tile);
}

}  // namespace asc::cpu
