// Operators that make tensors from shapes, counts and masks.
#include <cmath>

#include "ops/infer.h"
#include "ops/type_rules.h"

namespace asc {
namespace {

constexpr DTypeSet kRangeTypes = kWideFloats | kIndexTypes | DTypeSet(DType::kInt16);

void infer_shape_of(InferContext& ctx) {
  const int64_t rank = ctx.input(0).rank();
  int64_t start = ctx.attr("start", 0), end = ctx.attr("end", rank);
  start = std::clamp<int64_t>(start < 0 ? start + rank : start, 0, rank);
  end = std::clamp<int64_t>(end < 0 ? end + rank : end, 0, rank);
  ctx.set_output(0, Shape{std::max<int64_t>(end - start, 0)});
}

void infer_size(InferContext& ctx) {
  check_size(ctx, ctx.input(0));
  ctx.set_output(0, Shape());
}

int64_t range_count(const ShapeContext& ctx, int64_t start, int64_t limit, int64_t delta) {
  if (delta == 0) fail_shape(ctx, "delta is 0; expected another number");
  const auto span = static_cast<__int128>(limit) - start;
  if (span == 0 || (span > 0) != (delta > 0)) return 0;
  const __int128 count = (span + (delta > 0 ? delta - 1 : __int128{delta} + 1)) / delta;
  return count > kMaxElements ? kMaxElements + 1 : static_cast<int64_t>(count);
}

int64_t range_count(const ShapeContext& ctx, double span, double delta) {
  const double count = std::ceil(span / delta);
  if (!std::isfinite(span) || !std::isfinite(delta) || delta == 0)
    fail_shape(ctx, "start, limit or delta is not finite, or delta is 0; expected finite numbers");
  return static_cast<int64_t>(std::clamp(count, 0.0, static_cast<double>(kMaxElements) * 2));
}

// The difference is taken in the type of the operands, as other runtimes do: rounding decides the count.
void infer_range(InferContext& ctx) {
  for (int i = 0; i < 3; ++i)
    if (ctx.host(i).dtype != ctx.host(0).dtype) ctx.fail("start, limit and delta have different types; insert a Cast");
  const double start = host_number(ctx, 0), limit = host_number(ctx, 1), delta = host_number(ctx, 2);
  int64_t count;
  switch (ctx.host(0).dtype) {
    case DType::kInt64:
      count = range_count(ctx, *ctx.host(0).as<int64_t>(), *ctx.host(1).as<int64_t>(), *ctx.host(2).as<int64_t>());
      break;
    case DType::kFloat32:
      count = range_count(ctx, static_cast<float>(limit) - static_cast<float>(start), delta);
      break;
    case DType::kFloat64:
      count = range_count(ctx, limit - start, delta);
      break;
    default:
      count = range_count(ctx, static_cast<int64_t>(start), static_cast<int64_t>(limit), static_cast<int64_t>(delta));
  }
  const Shape out{count};
  check_size(ctx, out);
  ctx.set_output(0, out);
}

void infer_constant_of_shape(InferContext& ctx) {
  const HostInts sizes(ctx, 0);
  if (sizes.size() > kMaxRank) fail_unsupported(ctx, message("rank ", sizes.size(), "; at most ", kMaxRank));
  Shape out;
  for (int i = 0; i < sizes.size(); ++i) out.push_back(sizes[i]);
  check_size(ctx, out);
  ctx.set_output(0, out);
}

// Upper bound: every element is non-zero. A scalar has no coordinates.
void infer_non_zero(InferContext& ctx) {
  const Shape& x = ctx.input(0);
  const Shape bound{x.rank(), x.num_elements()};
  check_size(ctx, bound);
  ctx.set_output(0, bound);
}

// Upper bound: the whole condition is true; it may be shorter or longer than the axis that it selects from.
void infer_compress(InferContext& ctx) {
  const Shape& x = ctx.input(0);
  check_rank(ctx, 1, 1);
  const int64_t picks = ctx.input(1)[0];
  if (!ctx.attributes().has("axis")) {
    ctx.set_output(0, Shape{std::min(picks, x.num_elements())});
    return;
  }
  Shape out = x;
  const int axis = static_cast<int>(normalize_axis(ctx.attr("axis", 0), x.rank(), ctx));
  out[axis] = std::min(picks, x[axis]);
  ctx.set_output(0, out);
}

void infer_eye_like(InferContext& ctx) {
  check_rank(ctx, 0, 2);
  ctx.set_output(0, ctx.input(0));
}

void infer_one_hot(InferContext& ctx) {
  const Shape& indices = ctx.input(0);
  const double depth = host_number(ctx, 1);
  if (!(depth >= 0 && depth <= static_cast<double>(kMaxElements)))
    ctx.fail(message("depth is ", static_cast<int64_t>(depth < 0 ? -1 : kMaxElements), "; negative or too large"));
  if (ctx.input(2) != Shape{2}) ctx.fail(message("values has shape ", ctx.input(2), "; expected [2]: off and on"));
  if (indices.rank() == kMaxRank) fail_unsupported(ctx, message("rank ", kMaxRank + 1, "; at most ", kMaxRank));
  Shape out = indices;
  const int64_t axis = normalize_axis(ctx.attr("axis", -1), indices.rank() + 1, ctx);
  out.insert(static_cast<int>(axis), static_cast<int64_t>(depth));
  check_size(ctx, out);
  ctx.set_output(0, out);
}

DType constant_of_shape_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  check_type(node, inputs, 0, kIndexTypes);
  const HostTensor* value = node.attributes.get_tensor("value");
  if (!value) return DType::kFloat32;
  if (value->shape.num_elements() != 1)
    fail_type(node, "attribute 'value' has shape " + value->shape.text() + "; expected one element");
  return value->dtype;
}

DType eye_like_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  return node.attributes.has("dtype") ? dtype_from_onnx(node, node.attributes.get_int("dtype", 0)) : inputs[0];
}

DType one_hot_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  check_type(node, inputs, 0, kNumbers);
  check_type(node, inputs, 1, kIntegers | kWideFloats);
  return inputs[2];
}

DType compress_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  check_type(node, inputs, 1, kBoolType);
  return inputs[0];
}

}  // namespace

void register_generate_ops(OpRegistry& r) {
  r.add(OpDef("Shape", 1, 1, infer_shape_of, indexed_type_to_int64<kAnyType>).host_able().shape_only());
  r.add(OpDef("Size", 1, 1, infer_size, indexed_type_to_int64<kAnyType>).host_able().shape_only());
  r.add(OpDef("Range", 3, 3, infer_range, same_type<kRangeTypes>).host_able().reads_host({0, 1, 2}));
  r.add(OpDef("ConstantOfShape", 1, 1, infer_constant_of_shape, constant_of_shape_type).host_able().reads_host({0}));
  r.add(OpDef("EyeLike", 1, 1, infer_eye_like, eye_like_type).host_able());
  r.add(OpDef("OneHot", 3, 3, infer_one_hot, one_hot_type).host_able().reads_host({1}));
  r.add(OpDef("NonZero", 1, 1, infer_non_zero, indexed_type_to_int64<kAnyType>).of_kind(OpKind::kDataDependent));
  r.add(OpDef("Compress", 2, 2, infer_compress, compress_type).of_kind(OpKind::kDataDependent));
}

}  // namespace asc
