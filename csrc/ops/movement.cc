// Operators that move data: reshaping, transposition, joining and cutting. Indexed access is in movement_index.cc.
#include "ops/movement.h"

#include "ops/infer.h"
#include "ops/type_rules.h"

namespace asc {
namespace {

// 0 copies the input's dimension (unless allowzero), one -1 takes what is left.
void infer_reshape(InferContext& ctx) {
  const Shape& x = ctx.input(0);
  const HostInts wanted(ctx, 1);
  if (wanted.size() > kMaxRank) fail_unsupported(ctx, message("rank ", wanted.size(), "; at most ", kMaxRank));
  const bool allow_zero = flag(ctx, "allowzero", false);
  Shape& out = ctx.output(0);
  out = Shape();
  int unknown = -1;
  int64_t known = 1;
  for (int i = 0; i < wanted.size(); ++i) {
    int64_t d = wanted[i];
    if (d == 0 && !allow_zero) {
      if (i >= x.rank()) ctx.fail(message("shape has 0 at position ", i, " but the input has shape ", x));
      d = x[i];
    } else if (d == -1) {
      if (unknown >= 0) ctx.fail(message("shape has -1 at positions ", unknown, " and ", i, "; only one is allowed"));
      unknown = i;
      d = 1;
    }
    out.push_back(d);
    if (d < 0 || __builtin_mul_overflow(known, d, &known))
      ctx.fail(message("shape has ", d, " at position ", i, "; the dimension is negative or too large"));
  }
  const int64_t total = x.num_elements();
  if (unknown >= 0) {
    if (known == 0 || total % known != 0)
      ctx.fail(message("cannot infer dimension ", unknown, " of ", out, " from input shape ", x));
    out[unknown] = total / known;
  } else if (known != total) {
    ctx.fail(message("input ", x, " has ", total, " elements, requested shape ", out, " has ", known));
  }
  if (total == 0) check_size(ctx, out);
}

void infer_flatten(InferContext& ctx) {
  const Shape& x = ctx.input(0);
  int64_t axis = ctx.attr("axis", 1);
  if (axis != x.rank()) axis = x.rank() == 0 && axis == 0 ? 0 : normalize_axis(axis, x.rank(), ctx);
  const int split = static_cast<int>(axis);
  check_size(ctx, x);
  ctx.set_output(0, Shape{x.span_of(0, split), x.span_of(split, x.rank())});
}

void infer_squeeze(InferContext& ctx) {
  const Shape& x = ctx.input(0);
  const bool has_axes = ctx.has_input(1);
  const uint32_t axes = has_axes ? axis_mask(ctx, HostInts(ctx, 1), x.rank()) : 0;
  Shape& out = ctx.output(0);
  out = Shape();
  for (int i = 0; i < x.rank(); ++i) {
    const bool is_named = axes >> i & 1;
    if (is_named && x[i] != 1) ctx.fail(message("axis ", i, " of ", x, " is not 1 and cannot be squeezed"));
    if (has_axes ? !is_named : x[i] != 1) out.push_back(x[i]);
  }
}

void infer_unsqueeze(InferContext& ctx) {
  const Shape& x = ctx.input(0);
  const HostInts axes(ctx, 1);
  if (x.rank() + axes.size() > kMaxRank)
    fail_unsupported(ctx, message("rank ", x.rank() + axes.size(), "; at most ", kMaxRank));
  const int rank = x.rank() + static_cast<int>(axes.size());
  const uint32_t added = axis_mask(ctx, axes, rank);
  Shape& out = ctx.output(0);
  out = Shape();
  for (int i = 0, from = 0; i < rank; ++i) out.push_back(added >> i & 1 ? 1 : x[from++]);
}

void infer_transpose(InferContext& ctx) {
  const Shape& x = ctx.input(0);
  const int rank = x.rank();
  const std::vector<int64_t>& perm = ctx.attributes().get_ints("perm");
  const bool is_reversed = perm.empty();
  if (!is_reversed && perm.size() != static_cast<size_t>(rank))
    ctx.fail(message("perm has ", static_cast<int64_t>(perm.size()), " entries for input ", x));
  Shape& out = ctx.output(0);
  out = x;
  uint32_t seen = 0;
  for (int i = 0; i < rank; ++i) {
    const int64_t from = is_reversed ? rank - 1 - i : perm[i];
    if (from < 0 || from >= rank || (seen >> from & 1))
      ctx.fail(message("perm entry ", i, " is ", from, "; expected a permutation of 0 to ", rank - 1));
    seen |= 1u << from;
    out[i] = x[static_cast<int>(from)];
  }
}

void infer_concat(InferContext& ctx) {
  const Shape& first = ctx.input(0);
  const int axis = static_cast<int>(normalize_axis(ctx.attr("axis", 0), first.rank(), ctx));
  Shape& out = ctx.output(0);
  out = first;
  for (int i = 1; i < ctx.input_count(); ++i) {
    const Shape& x = ctx.input(i);
    bool fits = x.rank() == first.rank();
    for (int d = 0; fits && d < x.rank(); ++d) fits = d == axis || x[d] == first[d];
    if (!fits)
      ctx.fail(message("input ", i, " has shape ", x, ", input 0 has ", first, "; only axis ", axis, " may differ"));
    out[axis] = checked_sum(ctx, out[axis], x[axis]);
  }
  check_size(ctx, out);
}

// Output i takes `size` of the `left` elements on the axis.
void set_part(InferContext& ctx, int i, int axis, int64_t size, int64_t left) {
  if (size < 0 || size > left)
    ctx.fail(message("part ", i, " has size ", size, " but ", left, " of ", ctx.input(0), " are left on axis ", axis));
  ctx.output(i) = ctx.input(0);
  ctx.output(i)[axis] = size;
}

void split_by_sizes(InferContext& ctx, int axis, int64_t dim) {
  const HostInts sizes(ctx, 1);
  const int parts = ctx.output_count();
  if (sizes.size() != parts) ctx.fail(message("split has ", sizes.size(), " sizes for ", parts, " outputs"));
  int64_t left = dim;
  for (int i = 0; i < parts; ++i) {
    set_part(ctx, i, axis, sizes[i], left);
    left -= sizes[i];
  }
  if (left != 0) ctx.fail(message("the sizes of split leave ", left, " of ", dim, " on axis ", axis));
}

// Without sizes the chunks are equal, the last may be smaller.
void infer_split(InferContext& ctx) {
  const Shape& x = ctx.input(0);
  const int axis = static_cast<int>(normalize_axis(ctx.attr("axis", 0), x.rank(), ctx));
  const int64_t dim = x[axis];
  if (ctx.has_input(1)) return split_by_sizes(ctx, axis, dim);
  const int parts = ctx.output_count();
  const int64_t declared = ctx.attr("num_outputs", parts);
  if (declared != parts || parts < 1)
    ctx.fail(message("num_outputs is ", declared, " but the node has ", parts, " outputs"));
  const int64_t chunk = dim / parts + (dim % parts != 0);
  int64_t left = dim;
  for (int i = 0; i < parts; ++i) {
    const int64_t size = i + 1 < parts ? chunk : left;
    set_part(ctx, i, axis, size, left);
    left -= size;
  }
}

// NumPy broadcasting between the input and the wanted sizes: either may be the larger one.
void infer_expand(InferContext& ctx) {
  const Shape& x = ctx.input(0);
  const HostInts sizes(ctx, 1);
  if (sizes.size() > kMaxRank) fail_unsupported(ctx, message("rank ", sizes.size(), "; at most ", kMaxRank));
  const int count = static_cast<int>(sizes.size()), rank = std::max(x.rank(), count);
  Shape& out = ctx.output(0);
  out = Shape();
  for (int i = 0; i < rank; ++i) {
    const int from_x = i - (rank - x.rank()), from_sizes = i - (rank - count);
    const int64_t d = from_x < 0 ? 1 : x[from_x], wanted = from_sizes < 0 ? 1 : sizes[from_sizes];
    if (wanted < 0 || (d != wanted && d != 1 && wanted != 1))
      ctx.fail(message("input ", x, " does not expand to ", wanted, " at position ", i, " of the output"));
    out.push_back(d == 1 ? wanted : d);
  }
  check_size(ctx, out);
}

void infer_tile(InferContext& ctx) {
  Shape out = ctx.input(0);
  const HostInts repeats(ctx, 1);
  if (repeats.size() != out.rank())
    ctx.fail(message("repeats has ", repeats.size(), " entries for input ", ctx.input(0)));
  for (int i = 0; i < out.rank(); ++i) {
    if (repeats[i] < 0) ctx.fail(message("repeats has ", repeats[i], " at position ", i, "; expected 0 or more"));
    out[i] = checked_product(ctx, out[i], repeats[i]);
  }
  check_size(ctx, out);
  ctx.set_output(0, out);
}

int64_t read_blocksize(const ShapeContext& ctx) {
  check_rank(ctx, 0, 4);
  const int64_t block = ctx.attr("blocksize", 0);
  if (block < 1 || block > INT32_MAX) fail_shape(ctx, message("blocksize is ", block, "; expected 1 or more"));
  return block;
}

void infer_depth_to_space(InferContext& ctx) {
  const int64_t block = read_blocksize(ctx);
  const Shape& x = ctx.input(0);
  const std::string_view mode = ctx.attributes().get_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") ctx.fail(message("mode is '", mode, "'; expected DCR or CRD"));
  if (x[1] % (block * block) != 0)
    ctx.fail(message("channels of ", x, " are not divisible by blocksize squared, ", block * block));
  const Shape out{x[0], x[1] / (block * block), checked_product(ctx, x[2], block), checked_product(ctx, x[3], block)};
  check_size(ctx, out);
  ctx.set_output(0, out);
}

void infer_space_to_depth(InferContext& ctx) {
  const int64_t block = read_blocksize(ctx);
  const Shape& x = ctx.input(0);
  if (x[2] % block != 0 || x[3] % block != 0)
    ctx.fail(message("height and width of ", x, " are not divisible by blocksize ", block));
  const Shape out{x[0], checked_product(ctx, x[1], block * block), x[2] / block, x[3] / block};
  check_size(ctx, out);
  ctx.set_output(0, out);
}

void infer_trilu(InferContext& ctx) {
  if (ctx.input(0).rank() < 2) ctx.fail(message("input has shape ", ctx.input(0), "; expected rank 2 or more"));
  if (ctx.has_input(1)) host_int(ctx, 1);
  ctx.set_output(0, ctx.input(0));
}

void infer_reverse_sequence(InferContext& ctx) {
  const Shape& x = ctx.input(0);
  const int64_t batch = ctx.attr("batch_axis", 1), time = ctx.attr("time_axis", 0);
  if (x.rank() < 2 || (batch | time) >> 1 != 0 || batch == time)
    ctx.fail(message("batch_axis ", batch, " and time_axis ", time, " with ", x, "; expected 0 and 1, rank 2 or more"));
  if (ctx.input(1) != Shape{x[static_cast<int>(batch)]})
    ctx.fail(message("sequence_lens is ", ctx.input(1), "; expected one length per batch entry of ", x));
  ctx.set_output(0, x);
}

// Any type of the same width, the bits as they are.
DType bit_cast_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  const DType to = dtype_from_onnx(node, node.attributes.get_int("to", 0));
  if (size_of(to) != size_of(inputs[0]))
    fail_type(node, std::string(name_of(inputs[0])) + " to " + name_of(to) + "; expected types of the same width");
  return to;
}

DType concat_type(const Node& node, const std::vector<DType>& inputs, int output) {
  if (!node.attributes.has("axis")) fail_type(node, "attribute 'axis' is missing; give the axis to join along");
  return same_dtype_as_first(node, inputs, output);
}

void register_view_ops(OpRegistry& r) {
  r.add(
      OpDef("Reshape", 2, 2, infer_reshape, indexed_type<kAnyType>).of_kind(OpKind::kView).host_able().reads_host({1}));
  r.add(OpDef("Flatten", 1, 1, infer_flatten, same_dtype_as_first).of_kind(OpKind::kView).host_able());
  r.add(
      OpDef("Squeeze", 1, 2, infer_squeeze, indexed_type<kAnyType>).of_kind(OpKind::kView).host_able().reads_host({1}));
  r.add(OpDef("Unsqueeze", 2, 2, infer_unsqueeze, indexed_type<kAnyType>)
            .of_kind(OpKind::kView)
            .host_able()
            .reads_host({1}));
}

}  // namespace

void register_movement_ops(OpRegistry& r) {
  register_view_ops(r);
  register_index_ops(r);
  r.add(OpDef("Transpose", 1, 1, infer_transpose, same_dtype_as_first).host_able());
  r.add(OpDef("Concat", 1, -1, infer_concat, concat_type).host_able());
  r.add(OpDef("Split", 1, 2, infer_split, indexed_type<kAnyType>).outputs(1, -1).host_able().reads_host({1}));
  r.add(OpDef("Expand", 2, 2, infer_expand, indexed_type<kAnyType>).host_able().reads_host({1}));
  r.add(OpDef("Tile", 2, 2, infer_tile, indexed_type<kAnyType>).host_able().reads_host({1}));
  r.add(OpDef("DepthToSpace", 1, 1, infer_depth_to_space, same_dtype_as_first));
  r.add(OpDef("SpaceToDepth", 1, 1, infer_space_to_depth, same_dtype_as_first));
  r.add(OpDef("ReverseSequence", 2, 2, infer_reverse_sequence, indexed_type<kAnyType>));
  r.add(OpDef("BitCast", 1, 1, infer_same_shape, bit_cast_type));
  r.add(OpDef("Trilu", 1, 2, infer_trilu, indexed_type<kAnyType>).host_able().reads_host({1}));
}

}  // namespace asc
