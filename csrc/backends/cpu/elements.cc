// GatherElements and ScatterElements: one index per element, along one axis.
#include <cstring>

#include "backends/cpu/combine.h"
#include "backends/cpu/indices.h"
#include "backends/cpu/loops.h"
#include "backends/cpu/movement.h"

namespace asc::cpu {
namespace {

// Rows run along the last dimension of the indices. Loop strides: `in` walks the data with the axis standing still,
// `out` walks the indices (GatherElements: the output).
struct ElementsTiling : TilingOf<ElementsTiling> {
  int rank = 0;  // loops outside the row
  int64_t row = 1, row_stride = 0;
  int64_t axis = 1, axis_stride = 0;
  int64_t element_bytes = 0, data_bytes = 0;
  bool is_int64 = true;
  CombineFn combine = nullptr;
  Loop loops[kMaxRank];
};

// Calls move(data element, index count so far) for every index; kOutOfRange stops it.
template <typename Move>
inline Status for_each_index(const ElementsTiling& t, IndexReader indices, char* data, Worker& worker,
                             const char* where, Move move) {
  int64_t k = 0, bad = -1;
  char* position = nullptr;  // the walk needs an output; the index count replaces it
  walk(t.loops, t.rank, data, position, [&](char* base, char*) {
    for (int64_t j = 0; j < t.row; ++j, ++k) {
      const int64_t index = wrap_index(indices[k], t.axis);
      if (index < 0) {
        if (bad < 0) bad = k;
        continue;
      }
      move(base + index * t.axis_stride + j * t.row_stride, k);
    }
  });
  return bad < 0 ? Status::kOk : fail_index(worker, where, indices[bad], t.axis);
}

template <size_t N>
Status launch_gather_elements(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const ElementsTiling*>(task.tiling);
  const IndexReader indices(slots[task.operands[1]], t.is_int64);
  char* out = task.output<char>(slots, 0);
  char* data = const_cast<char*>(task.input<char>(slots, 0));  // only read
  return for_each_index(t, indices, data, worker, "gather_elements",
                        [&](const char* from, int64_t k) { std::memcpy(out + k * static_cast<int64_t>(N), from, N); });
}

Status launch_scatter_elements(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const ElementsTiling*>(task.tiling);
  const IndexReader indices(slots[task.operands[1]], t.is_int64);
  const char* data = task.input<char>(slots, 0);
  const char* updates = task.input<char>(slots, 2);
  char* out = task.output<char>(slots, 0);
  if (out != data) std::memcpy(out, data, t.data_bytes);
  if (t.row == 0) return Status::kOk;
  return for_each_index(t, indices, out, worker, "scatter_elements",
                        [&](char* to, int64_t k) { t.combine(to, updates + k * t.element_bytes, 1); });
}

LaunchFn find_gather_elements(size_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return launch_gather_elements<1>;
    case 2:
      return launch_gather_elements<2>;
    case 4:
      return launch_gather_elements<4>;
    default:
      return launch_gather_elements<8>;
  }
}

std::shared_ptr<ElementsTiling> create_elements(const TilingContext& ctx, LaunchFn launch) {
  const Shape& x = ctx.input(0);
  const Shape& i = ctx.input(1);
  if (ctx.dtype(1) != DType::kInt64 && ctx.dtype(1) != DType::kInt32)
    fail_tiling(ctx, std::string("indices must be int64 or int32, got ") + name_of(ctx.dtype(1)) + "; add a Cast");
  if (x.rank() == 0 || i.rank() != x.rank())
    fail_tiling(ctx, "data " + x.text() + " and indices " + i.text() + " differ in rank; check the model");
  const int axis = checked_axis(ctx, ctx.attr("axis", 0), x.rank());
  auto t = create_tiling<ElementsTiling>(launch, "rows");
  t->element_bytes = static_cast<int64_t>(size_of(ctx.dtype(0)));
  t->data_bytes = count_of(x) * t->element_bytes;
  t->is_int64 = ctx.dtype(1) == DType::kInt64;
  t->axis = x[axis];
  t->axis_stride = x.span_of(axis + 1, x.rank()) * t->element_bytes;
  const int last = x.rank() - 1;
  t->row = count_of(i) == 0 ? 0 : i[last];
  t->row_stride = axis == last ? 0 : t->element_bytes;
  for (int d = 0; d <= last; ++d) {
    if (d != axis && i[d] > x[d])
      fail_tiling(ctx, "indices " + i.text() + " exceed data " + x.text() + " beside the axis; check the model");
    if (d < last && i[d] != 1 && t->row > 0)
      t->loops[t->rank++] = {i[d], d == axis ? 0 : x.span_of(d + 1, x.rank()) * t->element_bytes, 0};
  }
  return t;
}

std::shared_ptr<const Tiling> tile_gather_elements(const TilingContext& ctx) {
  if (count_of(ctx.output(0)) == 0) return create_empty_tiling();
  return create_elements(ctx, find_gather_elements(size_of(ctx.dtype(0))));
}

std::shared_ptr<const Tiling> tile_scatter_elements(const TilingContext& ctx) {
  if (ctx.input(1) != ctx.input(2))
    fail_tiling(ctx, "indices " + ctx.input(1).text() + " and updates " + ctx.input(2).text() +
                         " differ in shape; check the model");
  if (count_of(ctx.output(0)) == 0) return create_empty_tiling();
  auto t = create_elements(ctx, launch_scatter_elements);
  t->combine = find_combine(ctx, ctx.dtype(0));
  t->over_inputs = 1;
  return t;
}

}  // namespace

void register_elements(KernelRegistry& registry) {
  registry.add("GatherElements", kAnyType, tile_gather_elements);
  registry.add("ScatterElements", kAnyType, tile_scatter_elements);
}

}  // namespace asc::cpu
