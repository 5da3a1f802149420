// Quantised values: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, MatMulInteger.
#include "ops/quantize.h"
#include "ops/infer.h"
#include "ops/matmul.h"
#include "ops/type_rules.h"

namespace asc {
namespace {

constexpr DTypeSet kBytes = DTypeSet(DType::kInt8) | DTypeSet(DType::kUInt8);
constexpr DTypeSet kQuantized = kBytes | DTypeSet(DType::kInt16) | DTypeSet(DType::kUInt16);
constexpr DTypeSet kFromQuantized = kQuantized | DTypeSet(DType::kInt32);
constexpr DTypeSet kToQuantized = kFloats | DTypeSet(DType::kInt32);

void infer_scaled(InferContext& ctx) {
  read_scale_blocks(ctx);
  const auto is_one = [&](int i) { return ctx.input(i).rank() <= 1 && ctx.input(i).num_elements() == 1; };
  if (ctx.has_input(2) && ctx.input(2) != ctx.input(1) && !(is_one(1) && is_one(2)))  // writers mix [] and [1]
    ctx.fail(message("zero point ", ctx.input(2), " and scale ", ctx.input(1), "; expected equal shapes"));
  ctx.set_output(0, ctx.input(0));
}

DType quantize_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  check_type(node, inputs, 0, kToQuantized);
  check_type(node, inputs, 1, kToQuantized);
  check_type(node, inputs, 2, kQuantized);
  const int64_t wanted = node.attributes.get_int("output_dtype", 0);
  const DType given = is_given(inputs, 2) ? inputs[2] : DType::kUInt8;
  if (wanted == 0) return given;
  const DType type = dtype_from_onnx(node, wanted);
  if (!kQuantized.contains(type) || (is_given(inputs, 2) && type != given))
    fail_type(node, std::string("output_dtype is ") + name_of(type) + ", the zero point is " + name_of(given));
  return type;
}

DType dequantize_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  check_type(node, inputs, 0, kFromQuantized);
  check_type(node, inputs, 1, kFloats);
  check_same(node, inputs, 2);
  return inputs[1];
}

void infer_dynamic_quantize(InferContext& ctx) {
  ctx.set_output(0, ctx.input(0));
  ctx.set_output(1, Shape());
  ctx.set_output(2, Shape());
}

DType dynamic_quantize_type(const Node& node, const std::vector<DType>& inputs, int output) {
  check_arity(node, inputs);
  check_type(node, inputs, 0, DType::kFloat32);
  return output == 1 ? DType::kFloat32 : DType::kUInt8;
}

// Zero points: one number, one for each row of a (the last two axes of a zero point may also be [rows, 1]), one for
// each column of b.
void infer_matmul_integer(InferContext& ctx) {
  infer_matmul(ctx);
  for (int i : {2, 3}) {
    if (!ctx.has_input(i)) continue;
    const Shape &zero = ctx.input(i), &x = ctx.input(i - 2);
    const int64_t wanted = x.rank() < 2 ? 1 : i == 2 ? x[x.rank() - 2] : x[x.rank() - 1];
    if (zero.num_elements() != 1 && (zero.num_elements() != wanted || x.rank() > 2))
      ctx.fail(message("zero point ", zero, " of operand ", x, "; expected one number, or one for each of ", wanted));
  }
}

DType matmul_integer_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  for (size_t i : {0, 1}) {
    check_type(node, inputs, i, kBytes);
    check_same(node, inputs, i + 2, i);
  }
  return DType::kInt32;
}

}  // namespace

ScaleBlocks read_scale_blocks(const ShapeContext& ctx) {
  const Shape &x = ctx.input(0), &scale = ctx.input(1);
  const int64_t block = ctx.attr("block_size", 0);
  ScaleBlocks b;
  if (block == 0 && scale.rank() <= 1 && scale.num_elements() == 1) {
    b.inner = x.num_elements();
    return b;
  }
  const int axis = static_cast<int>(normalize_axis(ctx.attr("axis", 1), x.rank(), ctx));
  b.outer = x.span_of(0, axis);
  b.axis = x[axis];
  b.inner = x.span_of(axis + 1, x.rank());
  b.block = 1;
  if (block == 0) {
    if (scale != Shape{x[axis]})
      fail_shape(ctx,
                 message("scale ", scale, " for axis ", axis, " of ", x, "; expected one number, or one for each"));
    return b;
  }
  b.block = block;
  b.is_blocked = true;
  Shape wanted = x;
  if (block > 0) wanted[axis] = (x[axis] + block - 1) / block;
  if (block < 0 || scale != wanted)
    fail_shape(ctx,
               message("scale ", scale, ", block_size ", block, ", axis ", axis, " of ", x, "; expected ", wanted));
  return b;
}

void register_quantize_ops(OpRegistry& r) {
  r.add(OpDef("QuantizeLinear", 2, 3, infer_scaled, quantize_type));
  r.add(OpDef("DequantizeLinear", 2, 3, infer_scaled, dequantize_type));
  r.add(OpDef("DynamicQuantizeLinear", 1, 1, infer_dynamic_quantize, dynamic_quantize_type).outputs(3, 3));
  r.add(OpDef("MatMulInteger", 2, 4, infer_matmul_integer, matmul_integer_type));
}

}  // namespace asc
