// Gather: rows of one axis, picked by index.
#include <cstring>

#include "backends/cpu/indices.h"
#include "backends/cpu/movement.h"
#include "backends/cpu/tiling_base.h"

namespace asc::cpu {
namespace {

struct GatherTiling : TilingOf<GatherTiling> {
  int64_t outer;    // dimensions before the axis
  int64_t axis;     // length of the axis
  int64_t indices;  // count
  int64_t block;    // bytes behind the axis
  bool is_int64;
};

// Blocks of kBlock bytes; 0: of any size.
template <size_t kBlock>
Status launch_gather(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const GatherTiling*>(task.tiling);
  const IndexReader indices(slots[task.operands[1]], t.is_int64);
  const char* in = task.input<char>(slots, 0);
  char* out = task.output<char>(slots, 0);
  const size_t block = kBlock ? kBlock : static_cast<size_t>(t.block);
  for (int64_t o = 0; o < t.outer; ++o, in += t.axis * t.block) {
    for (int64_t i = 0; i < t.indices; ++i, out += block) {
      const int64_t index = wrap_index(indices[i], t.axis);
      if (index < 0) return fail_index(worker, "gather", indices[i], t.axis);
      std::memcpy(out, in + index * static_cast<int64_t>(block), block);
    }
  }
  return Status::kOk;
}

LaunchFn find_gather(int64_t block) {
  switch (block) {
    case 1:
      return launch_gather<1>;
    case 2:
      return launch_gather<2>;
    case 4:
      return launch_gather<4>;
    case 8:
      return launch_gather<8>;
    case 16:
      return launch_gather<16>;
    default:
      return launch_gather<0>;
  }
}

std::shared_ptr<const Tiling> tile_gather(const TilingContext& ctx) {
  const Shape& x = ctx.input(0);
  if (ctx.dtype(1) != DType::kInt64 && ctx.dtype(1) != DType::kInt32)
    fail_tiling(ctx, std::string("indices must be int64 or int32, got ") + name_of(ctx.dtype(1)) + "; add a Cast");
  const int axis = checked_axis(ctx, ctx.attr("axis", 0), x.rank());
  if (count_of(ctx.output(0)) == 0) return create_empty_tiling();
  const int64_t block = x.span_of(axis + 1, x.rank()) * static_cast<int64_t>(size_of(ctx.dtype(0)));
  auto t = create_tiling<GatherTiling>(find_gather(block), "blocks");
  t->outer = x.span_of(0, axis);
  t->axis = x[axis];
  t->indices = count_of(ctx.input(1));
  t->block = block;
  t->is_int64 = ctx.dtype(1) == DType::kInt64;
  return t;
}

}  // namespace

void register_gather(KernelRegistry& registry) { registry.add("Gather", kAnyType, tile_gather); }

}  // namespace asc::cpu
