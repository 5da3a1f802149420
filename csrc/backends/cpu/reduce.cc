// Reduce*: tiling. Neighbouring dimensions of one kind merge; size-1 dimensions vanish.
#include "backends/cpu/reduce.h"

#include "backends/cpu/kernels.h"

namespace asc {

void register_reduce_kernels(KernelRegistry& registry) {
  cpu::register_reduce(registry);
  cpu::register_arg_reduce(registry);
  cpu::register_cumsum(registry);
  cpu::register_topk(registry);
  cpu::register_softmax(registry);
  cpu::register_layer_norm(registry);
  cpu::register_channel_norm(registry);
}

namespace cpu {
namespace {

// Bit i: axis i is reduced.
unsigned read_axes(const TilingContext& ctx, int rank) {
  unsigned mask = 0;
  if (ctx.has_input(1)) {
    int64_t axes[kMaxRank];
    const int count = read_ints(ctx, 1, axes, kMaxRank);
    for (int i = 0; i < count; ++i) mask |= 1u << checked_axis(ctx, axes[i], rank);
    if (count > 0) return mask;
  }
  return ctx.attr("noop_with_empty_axes", 0) != 0 ? 0 : (1u << rank) - 1;
}

struct Run {
  int64_t count;
  bool is_reduced;
};

int merge_runs(const Shape& x, unsigned reduced, Run* runs) {
  int n = 0;
  for (int i = 0; i < x.rank(); ++i) {
    const bool is_reduced = (reduced >> i) & 1u;
    if (x[i] == 1) continue;
    if (n > 0 && runs[n - 1].is_reduced == is_reduced)
      runs[n - 1].count *= x[i];
    else
      runs[n++] = {x[i], is_reduced};
  }
  if (n == 0) runs[n++] = {1, true};
  return n;
}

// Nothing to reduce, but outputs: every one gets the identity of an empty row.
void fill_empty(ReduceTiling& t, int64_t outputs, int64_t element_bytes) {
  t.row = t.count = 0;
  t.row_is_reduced = true;
  t.keep[t.keep_rank++] = {outputs, 0, element_bytes};
}

void fill_loops(ReduceTiling& t, const Run* runs, int n, int64_t element_bytes) {
  t.row = runs[n - 1].count;
  t.row_is_reduced = runs[n - 1].is_reduced;
  int64_t in_stride = element_bytes, out_stride = element_bytes;
  for (int i = 0; i < n; ++i) {
    in_stride *= runs[i].count;
    if (runs[i].is_reduced)
      t.count *= runs[i].count;
    else
      out_stride *= runs[i].count;
  }
  for (int i = 0; i + 1 < n; ++i) {
    in_stride /= runs[i].count;
    if (runs[i].is_reduced) {
      t.reduce[t.reduce_rank++] = {runs[i].count, in_stride, 0};
    } else {
      out_stride /= runs[i].count;
      t.keep[t.keep_rank++] = {runs[i].count, in_stride, out_stride};
    }
  }
}

std::shared_ptr<const Tiling> tile_reduce(const TilingContext& ctx, ReduceKind kind) {
  const Shape& x = ctx.input(0);
  const unsigned reduced = read_axes(ctx, x.rank());
  const auto element_bytes = static_cast<int64_t>(size_of(ctx.dtype(0)));
  const LaunchFn vector = find_float_reduce(ctx.dtype(0));
  const LaunchFn launch = vector ? vector : find_exact_reduce(kind, ctx.dtype(0));
  if (!launch) ctx.unsupported(std::string("element type ") + name_of(ctx.dtype(0)) + "; cast the input");
  int64_t outputs = 1, count = 1;
  for (int i = 0; i < x.rank(); ++i) ((reduced >> i) & 1u ? count : outputs) *= x[i];
  if (outputs != count_of(ctx.output(0)))
    fail_tiling(ctx, "axes do not lead from " + x.text() + " to " + ctx.output(0).text() + "; check the model");
  if (outputs == 0) return create_empty_tiling();
  auto t = create_tiling<ReduceTiling>(launch, vector ? "vector" : "scalar");
  t->kind = kind;
  Run runs[kMaxRank];
  if (count == 0)
    fill_empty(*t, outputs, element_bytes);
  else
    fill_loops(*t, runs, merge_runs(x, reduced, runs), element_bytes);
  return t;
}

template <ReduceKind kKind>
std::shared_ptr<const Tiling> tile_kind(const TilingContext& ctx) {
  return tile_reduce(ctx, kKind);
}

}  // namespace

void register_reduce(KernelRegistry& registry) {
  registry.add("ReduceSum", kAnyType, tile_kind<ReduceKind::kSum>);
  registry.add("ReduceMean", kAnyType, tile_kind<ReduceKind::kMean>);
  registry.add("ReduceMax", kAnyType, tile_kind<ReduceKind::kMax>);
  registry.add("ReduceMin", kAnyType, tile_kind<ReduceKind::kMin>);
  registry.add("ReduceProd", kAnyType, tile_kind<ReduceKind::kProd>);
  registry.add("ReduceL1", kAnyType, tile_kind<ReduceKind::kL1>);
  registry.add("ReduceL2", kAnyType, tile_kind<ReduceKind::kL2>);
  registry.add("ReduceLogSum", kAnyType, tile_kind<ReduceKind::kLogSum>);
  registry.add("ReduceLogSumExp", kAnyType, tile_kind<ReduceKind::kLogSumExp>);
  registry.add("ReduceSumSquare", kAnyType, tile_kind<ReduceKind::kSumSquare>);
}

}  // namespace cpu
}  // namespace asc
