// Data movement by ranges and indices: Slice, Pad, Gather, Scatter and their relatives.
#include "ops/infer.h"
#include "ops/movement.h"
#include "ops/type_rules.h"

namespace asc {
namespace {

void infer_slice(InferContext& ctx) {
  Shape& out = ctx.output(0);
  out = ctx.input(0);
  const HostInts starts(ctx, 1), ends(ctx, 2);
  const int64_t count = starts.size();
  const bool has_axes = ctx.has_input(3), has_steps = ctx.has_input(4);
  const HostInts axes = has_axes ? HostInts(ctx, 3) : starts;
  const HostInts steps = has_steps ? HostInts(ctx, 4) : starts;
  if (ends.size() != count || axes.size() != count || steps.size() != count)
    ctx.fail(message("starts, ends, axes and steps have ", count, ", ", ends.size(), ", ", axes.size(), " and ",
                     steps.size(), " entries; expected equal counts"));
  uint32_t seen = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int axis = static_cast<int>(normalize_axis(has_axes ? axes[i] : i, out.rank(), ctx));
    if (seen >> axis & 1) ctx.fail(message("axis ", axis, " is sliced twice; name each axis once"));
    seen |= 1u << axis;
    const int64_t step = has_steps ? steps[i] : 1;
    if (step == 0) ctx.fail(message("the step of axis ", axis, " is 0; expected another number"));
    out[axis] = slice_range(starts[i], ends[i], step, out[axis]).count;
  }
}

// Whether the border is filled with a constant; every other mode repeats elements of the input.
bool pads_with_constant(const ShapeContext& ctx) {
  const std::string_view mode = ctx.attributes().get_string("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    fail_shape(ctx, message("mode is '", mode, "'; expected constant, reflect, edge or wrap"));
  return mode == "constant";
}

// Negative pads remove elements.
int64_t padded_dim(const ShapeContext& ctx, bool is_constant, int axis, int64_t dim, int64_t before, int64_t after) {
  constexpr int64_t kMaxPad = int64_t{1} << 48;
  if (std::max(before, after) > kMaxPad || std::min(before, after) < -kMaxPad)
    fail_shape(ctx, message("pads ", before, " and ", after, " of axis ", axis, " are too large"));
  const int64_t kept = dim + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
  if (kept < 0) fail_shape(ctx, message("pads ", before, " and ", after, " remove more than axis ", axis, ", ", dim));
  if (kept == 0 && !is_constant && std::max(before, after) > 0)
    fail_shape(ctx, message("axis ", axis, " is empty; only mode constant can pad it"));
  return dim + before + after;
}

void infer_pad(InferContext& ctx) {
  Shape out = ctx.input(0);
  const HostInts pads(ctx, 1);
  check_single(ctx, 2);
  const bool has_axes = ctx.has_input(3);
  const HostInts axes = has_axes ? HostInts(ctx, 3) : pads;
  const int64_t count = has_axes ? axes.size() : out.rank();
  if (pads.size() % 2 != 0 || pads.size() / 2 != count)
    ctx.fail(message("pads has ", pads.size(), " entries for ", count, " axes; expected two for each"));
  const bool is_constant = pads_with_constant(ctx);
  uint32_t seen = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int axis = static_cast<int>(normalize_axis(has_axes ? axes[i] : i, out.rank(), ctx));
    if (seen >> axis & 1) ctx.fail(message("axis ", axis, " is padded twice; name each axis once"));
    seen |= 1u << axis;
    out[axis] = padded_dim(ctx, is_constant, axis, out[axis], pads[i], pads[count + i]);
  }
  check_size(ctx, out);
  ctx.set_output(0, out);
}

void infer_gather(InferContext& ctx) {
  const Shape& x = ctx.input(0);
  const Shape& indices = ctx.input(1);
  const int axis = static_cast<int>(normalize_axis(ctx.attr("axis", 0), x.rank(), ctx));
  if (x.rank() - 1 + indices.rank() > kMaxRank)
    fail_unsupported(ctx, message("rank ", x.rank() - 1 + indices.rank(), "; at most ", kMaxRank));
  Shape& out = ctx.output(0);
  out = Shape();
  for (int i = 0; i < axis; ++i) out.push_back(x[i]);
  for (int64_t d : indices) out.push_back(d);
  for (int i = axis + 1; i < x.rank(); ++i) out.push_back(x[i]);
  check_size(ctx, out);
}

// The last dimension of the indices addresses axes batch_dims, batch_dims + 1, … of the data.
int64_t index_depth(const ShapeContext& ctx, const Shape& x, const Shape& indices, int64_t batch_dims) {
  if (x.rank() == 0 || indices.rank() == 0 || batch_dims < 0 || batch_dims >= std::min(x.rank(), indices.rank()))
    fail_shape(ctx, message("data ", x, " and indices ", indices, " with batch_dims ", batch_dims,
                            "; expected ranks above batch_dims"));
  const int64_t depth = indices[indices.rank() - 1];
  if (depth < 1 || depth > x.rank() - batch_dims)
    fail_shape(ctx, message("the last dimension of indices ", indices, " is ", depth, "; expected 1 to ",
                            x.rank() - batch_dims));
  return depth;
}

void infer_gather_nd(InferContext& ctx) {
  const Shape& x = ctx.input(0);
  const Shape& indices = ctx.input(1);
  const int64_t batch_dims = ctx.attr("batch_dims", 0);
  const int tail = static_cast<int>(batch_dims + index_depth(ctx, x, indices, batch_dims));
  for (int i = 0; i < batch_dims; ++i)
    if (x[i] != indices[i]) ctx.fail(message("data ", x, " and indices ", indices, " differ in batch dimension ", i));
  if (indices.rank() - 1 + x.rank() - tail > kMaxRank)
    fail_unsupported(ctx, message("rank ", indices.rank() - 1 + x.rank() - tail, "; at most ", kMaxRank));
  Shape out;
  for (int i = 0; i + 1 < indices.rank(); ++i) out.push_back(indices[i]);
  for (int i = tail; i < x.rank(); ++i) out.push_back(x[i]);
  check_size(ctx, out);
  ctx.set_output(0, out);
}

// Indices point along one axis; in all others they stay inside the data.
void check_element_indices(const ShapeContext& ctx, const Shape& x, const Shape& indices) {
  const int axis = static_cast<int>(normalize_axis(ctx.attr("axis", 0), x.rank(), ctx));
  bool fits = x.rank() == indices.rank();
  for (int i = 0; fits && i < x.rank(); ++i) fits = i == axis || indices[i] <= x[i];
  if (!fits)
    fail_shape(ctx, message("indices ", indices, " do not fit data ", x, "; only axis ", axis, " may be larger"));
}

void infer_gather_elements(InferContext& ctx) {
  check_element_indices(ctx, ctx.input(0), ctx.input(1));
  ctx.set_output(0, ctx.input(1));
}

void check_reduction(const ShapeContext& ctx) {
  const std::string_view reduction = ctx.attributes().get_string("reduction", "none");
  for (const char* known : {"none", "add", "mul", "max", "min"})
    if (reduction == known) return;
  fail_shape(ctx, message("reduction is '", reduction, "'; expected none, add, mul, max or min"));
}

void infer_scatter_elements(InferContext& ctx) {
  check_reduction(ctx);
  check_element_indices(ctx, ctx.input(0), ctx.input(1));
  if (ctx.input(1) != ctx.input(2))
    ctx.fail(message("indices ", ctx.input(1), " and updates ", ctx.input(2), "; expected equal shapes"));
  ctx.set_output(0, ctx.input(0));
}

void infer_scatter_nd(InferContext& ctx) {
  check_reduction(ctx);
  const Shape& x = ctx.input(0);
  const Shape& indices = ctx.input(1);
  const Shape& updates = ctx.input(2);
  const int depth = static_cast<int>(index_depth(ctx, x, indices, 0));
  const int lead = indices.rank() - 1;
  bool fits = updates.rank() == lead + x.rank() - depth;
  for (int i = 0; fits && i < updates.rank(); ++i) fits = updates[i] == (i < lead ? indices[i] : x[depth + i - lead]);
  if (!fits)
    ctx.fail(message("updates ", updates, " do not fit data ", x, " and indices ", indices,
                     "; expected the indices' leading dimensions, then the data's trailing ones"));
  ctx.set_output(0, x);
}

DType scatter_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  check_type(node, inputs, 1, kIndexTypes);
  check_same(node, inputs, 2);
  return inputs[0];
}

DType pad_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  check_type(node, inputs, 1, kIndexTypes);
  check_same(node, inputs, 2);
  check_type(node, inputs, 3, kIndexTypes);
  return inputs[0];
}

}  // namespace

void register_index_ops(OpRegistry& r) {
  r.add(OpDef("Slice", 3, 5, infer_slice, indexed_type<kAnyType>).host_able().reads_host({1, 2, 3, 4}));
  r.add(OpDef("Pad", 2, 4, infer_pad, pad_type).host_able().reads_host({1, 3}));
  r.add(OpDef("Gather", 2, 2, infer_gather, indexed_type<kAnyType>).host_able());
  r.add(OpDef("GatherND", 2, 2, infer_gather_nd, indexed_type<kAnyType>).host_able());
  r.add(OpDef("GatherElements", 2, 2, infer_gather_elements, indexed_type<kAnyType>).host_able());
  r.add(OpDef("ScatterND", 3, 3, infer_scatter_nd, scatter_type).host_able());
  r.add(OpDef("ScatterElements", 3, 3, infer_scatter_elements, scatter_type));
}

}  // namespace asc
