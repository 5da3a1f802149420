// ReverseSequence: the first sequence_lens[b] steps of batch entry b in reverse order, the rest as they are.
#include <cstring>

#include "backends/cpu/movement.h"
#include "backends/cpu/tiling_base.h"

namespace asc::cpu {
namespace {

struct ReverseTiling : TilingOf<ReverseTiling> {
  int64_t batches, steps;
  int64_t batch_stride, step_stride;  // bytes
  int64_t row_bytes;
};

Status launch_reverse(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const ReverseTiling*>(task.tiling);
  const char* in = task.input<char>(slots, 0);
  const int64_t* lengths = task.input<int64_t>(slots, 1);
  char* out = task.output<char>(slots, 0);
  for (int64_t b = 0; b < t.batches; ++b, in += t.batch_stride, out += t.batch_stride) {
    if (lengths[b] < 0 || lengths[b] > t.steps)
      return worker.fail(Status::kOutOfRange, "sequence_lens holds " + std::to_string(lengths[b]) + "; expected 0 to " +
                                                  std::to_string(t.steps));
    for (int64_t s = 0; s < t.steps; ++s) {
      const int64_t from = s < lengths[b] ? lengths[b] - 1 - s : s;
      std::memcpy(out + s * t.step_stride, in + from * t.step_stride, t.row_bytes);
    }
  }
  return Status::kOk;
}

std::shared_ptr<const Tiling> tile_reverse(const TilingContext& ctx) {
  const Shape& x = ctx.input(0);
  if (count_of(x) == 0) return create_empty_tiling();
  if (ctx.dtype(1) != DType::kInt64) ctx.unsupported("sequence_lens must be int64");
  auto t = create_tiling<ReverseTiling>(launch_reverse, "rows");
  const int batch = static_cast<int>(ctx.attr("batch_axis", 1));
  t->batches = x[batch];
  t->steps = x[1 - batch];
  t->row_bytes = x.span_of(2, x.rank()) * static_cast<int64_t>(size_of(ctx.dtype(0)));
  t->batch_stride = t->row_bytes * (batch == 0 ? t->steps : 1);
  t->step_stride = t->row_bytes * (batch == 0 ? 1 : t->batches);
  return t;
}

}  // namespace

void register_reverse_sequence(KernelRegistry& registry) { registry.add("ReverseSequence", kAnyType, tile_reverse); }

}  // namespace asc::cpu
