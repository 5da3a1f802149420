// GatherND and ScatterND: index tuples address blocks of the data.
#include <cstring>

#include "backends/cpu/combine.h"
#include "backends/cpu/indices.h"
#include "backends/cpu/movement.h"

namespace asc::cpu {
namespace {

struct TuplesTiling : TilingOf<TuplesTiling> {
  int64_t batches = 1, batch_bytes = 0;       // leading dimensions that data and indices share (GatherND)
  int64_t tuples = 0;                         // per batch
  int length = 0;                             // indices in a tuple
  int64_t dims[kMaxRank], strides[kMaxRank];  // of the indexed dimensions; strides in bytes
  int64_t block_bytes = 0, block_elements = 0, data_bytes = 0;
  bool is_int64 = true;
  CombineFn combine = nullptr;
};

// Byte offset of the block that tuple `k` addresses; kOutOfRange puts the culprit in the worker's error.
inline Status resolve_tuple(const TuplesTiling& t, IndexReader indices, int64_t k, Worker& worker, const char* where,
                            int64_t* offset) {
  int64_t sum = 0;
  for (int d = 0; d < t.length; ++d) {
    const int64_t index = wrap_index(indices[k * t.length + d], t.dims[d]);
    if (index < 0) return fail_index(worker, where, indices[k * t.length + d], t.dims[d]);
    sum += index * t.strides[d];
  }
  *offset = sum;
  return Status::kOk;
}

Status launch_gather_nd(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const TuplesTiling*>(task.tiling);
  const IndexReader indices(slots[task.operands[1]], t.is_int64);
  const char* data = task.input<char>(slots, 0);
  char* out = task.output<char>(slots, 0);
  for (int64_t b = 0; b < t.batches; ++b, data += t.batch_bytes) {
    for (int64_t k = b * t.tuples; k < (b + 1) * t.tuples; ++k, out += t.block_bytes) {
      int64_t offset = 0;
      const Status s = resolve_tuple(t, indices, k, worker, "gather_nd", &offset);
      if (s != Status::kOk) return s;
      std::memcpy(out, data + offset, t.block_bytes);
    }
  }
  return Status::kOk;
}

Status launch_scatter_nd(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const TuplesTiling*>(task.tiling);
  const IndexReader indices(slots[task.operands[1]], t.is_int64);
  const char* data = task.input<char>(slots, 0);
  const char* updates = task.input<char>(slots, 2);
  char* out = task.output<char>(slots, 0);
  if (out != data) std::memcpy(out, data, t.data_bytes);
  for (int64_t k = 0; k < t.tuples; ++k, updates += t.block_bytes) {
    int64_t offset = 0;
    const Status s = resolve_tuple(t, indices, k, worker, "scatter_nd", &offset);
    if (s != Status::kOk) return s;
    t.combine(out + offset, updates, t.block_elements);
  }
  return Status::kOk;
}

// Checks shapes against each other, so that no index can leave the data.
std::shared_ptr<TuplesTiling> create_tuples(const TilingContext& ctx, LaunchFn launch, int batch_dims) {
  const Shape& x = ctx.input(0);
  const Shape& i = ctx.input(1);
  if (ctx.dtype(1) != DType::kInt64 && ctx.dtype(1) != DType::kInt32)
    fail_tiling(ctx, std::string("indices must be int64 or int32, got ") + name_of(ctx.dtype(1)) + "; add a Cast");
  const int64_t length = i.rank() > 0 ? i[i.rank() - 1] : -1;
  if (batch_dims < 0 || batch_dims >= i.rank() || length < 0 || length > x.rank() - batch_dims)
    fail_tiling(ctx, "indices " + i.text() + " do not address data " + x.text() + " with batch_dims " +
                         std::to_string(batch_dims) + "; check the model");
  auto t = create_tiling<TuplesTiling>(launch, "blocks");
  const auto size = static_cast<int64_t>(size_of(ctx.dtype(0)));
  for (int d = 0; d < batch_dims; ++d)
    if (i[d] != x[d]) fail_tiling(ctx, "batch dimensions of " + x.text() + " and " + i.text() + " differ");
  t->length = static_cast<int>(length);
  t->batches = x.span_of(0, batch_dims);
  t->batch_bytes = x.span_of(batch_dims, x.rank()) * size;
  t->tuples = i.span_of(batch_dims, i.rank() - 1);
  for (int d = 0; d < t->length; ++d) {
    t->dims[d] = x[batch_dims + d];
    t->strides[d] = x.span_of(batch_dims + d + 1, x.rank()) * size;
  }
  t->block_elements = x.span_of(batch_dims + t->length, x.rank());
  t->block_bytes = t->block_elements * size;
  t->data_bytes = count_of(x) * size;
  t->is_int64 = ctx.dtype(1) == DType::kInt64;
  return t;
}

std::shared_ptr<const Tiling> tile_gather_nd(const TilingContext& ctx) {
  if (count_of(ctx.output(0)) == 0) return create_empty_tiling();
  const int64_t batch_dims = ctx.attr("batch_dims", 0);
  if (batch_dims < 0 || batch_dims > kMaxRank)
    fail_tiling(ctx, "batch_dims " + std::to_string(batch_dims) + " is out of range; correct the attribute");
  return create_tuples(ctx, launch_gather_nd, static_cast<int>(batch_dims));
}

std::shared_ptr<const Tiling> tile_scatter_nd(const TilingContext& ctx) {
  if (count_of(ctx.output(0)) == 0) return create_empty_tiling();
  auto t = create_tuples(ctx, launch_scatter_nd, 0);
  if (count_of(ctx.input(2)) != t->tuples * t->block_elements)
    fail_tiling(ctx, "updates " + ctx.input(2).text() + " do not fit indices " + ctx.input(1).text() + " into data " +
                         ctx.input(0).text() + "; check the model");
  t->combine = find_combine(ctx, ctx.dtype(0));
  t->over_inputs = 1;
  return t;
}

}  // namespace

void register_tuples(KernelRegistry& registry) {
  registry.add("GatherND", kAnyType, tile_gather_nd);
  registry.add("ScatterND", kAnyType, tile_scatter_nd);
}

}  // namespace asc::cpu
