// Reductions along axes, ArgMax and ArgMin, CumSum, CumProd, TopK.
#include "ops/infer.h"
#include "ops/type_rules.h"

namespace asc {
namespace {

// Axes come from the optional input 1; no axes mean all, or none with noop_with_empty_axes.
void infer_reduce(InferContext& ctx) {
  const Shape& x = ctx.input(0);
  uint32_t axes = 0;
  if (ctx.has_input(1)) axes = axis_mask(ctx, HostInts(ctx, 1), x.rank());
  if (axes == 0 && !flag(ctx, "noop_with_empty_axes", false)) axes = (1u << x.rank()) - 1;
  const bool keep_dims = flag(ctx, "keepdims", true);
  Shape& out = ctx.output(0);
  out = Shape();
  for (int i = 0; i < x.rank(); ++i) {
    if (!(axes >> i & 1))
      out.push_back(x[i]);
    else if (keep_dims)
      out.push_back(1);
  }
}

void infer_arg_reduce(InferContext& ctx) {
  Shape out = ctx.input(0);
  const int axis = static_cast<int>(normalize_axis(ctx.attr("axis", 0), out.rank(), ctx));
  if (out[axis] == 0) ctx.fail(message("axis ", axis, " of ", out, " is empty and has no extreme element"));
  if (flag(ctx, "keepdims", true))
    out[axis] = 1;
  else
    out.erase(axis);
  ctx.set_output(0, out);
}

void infer_cumsum(InferContext& ctx) {
  normalize_axis(host_int(ctx, 1), ctx.input(0).rank(), ctx);
  ctx.set_output(0, ctx.input(0));
}

void infer_topk(InferContext& ctx) {
  Shape out = ctx.input(0);
  const int axis = static_cast<int>(normalize_axis(ctx.attr("axis", -1), out.rank(), ctx));
  flag(ctx, "largest", true);
  const int64_t k = host_int(ctx, 1);
  if (k < 0 || k > out[axis])
    ctx.fail(message("K is ", k, " on axis ", axis, " of ", out, "; expected 0 to ", out[axis]));
  out[axis] = k;
  ctx.set_output(0, out);
  ctx.set_output(1, out);
}

DType topk_type(const Node& node, const std::vector<DType>& inputs, int output) {
  const DType t = indexed_type<kNumbers>(node, inputs, output);
  return output == 0 ? t : DType::kInt64;
}

}  // namespace

void register_reduce_ops(OpRegistry& r) {
  for (const char* name : {"ReduceSum", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
                           "ReduceLogSumExp", "ReduceSumSquare"})
    r.add(OpDef(name, 1, 2, infer_reduce, indexed_type<kNumbers>).host_able().reads_host({1}));
  for (const char* name : {"ReduceMax", "ReduceMin"})
    r.add(OpDef(name, 1, 2, infer_reduce, indexed_type<kAnyType>).host_able().reads_host({1}));
  for (const char* name : {"ArgMax", "ArgMin"})
    r.add(OpDef(name, 1, 1, infer_arg_reduce, indexed_type_to_int64<kNumbers>).host_able());
  for (const char* name : {"CumSum", "CumProd"})
    r.add(OpDef(name, 2, 2, infer_cumsum, indexed_type<kNumbers>).host_able().reads_host({1}));
  r.add(OpDef("TopK", 2, 2, infer_topk, topk_type).outputs(2, 2).host_able().reads_host({1}));
}

}  // namespace asc
