// Element-wise operators: unary functions, broadcasting binary and variadic ones, casts.
#include "ops/infer.h"
#include "ops/type_rules.h"

namespace asc {
namespace {

constexpr DTypeSet kSignedNumbers = kFloats | kSignedIntegers;

void infer_broadcast(InferContext& ctx) { ctx.set_output(0, broadcast_shapes(ctx.input(0), ctx.input(1), ctx)); }

void infer_broadcast_all(InferContext& ctx) {
  Shape& out = ctx.output(0);
  out = ctx.input(0);
  for (int i = 1; i < ctx.input_count(); ++i) {
    if (ctx.input(i) != out) out = broadcast_shapes(out, ctx.input(i), ctx);
  }
}

void infer_prelu(InferContext& ctx) {
  check_broadcasts_to(ctx, ctx.input(1), ctx.input(0), "slope");
  ctx.set_output(0, ctx.input(0));
}

void infer_clip(InferContext& ctx) {
  check_single(ctx, 1);
  check_single(ctx, 2);
  ctx.set_output(0, ctx.input(0));
}

// Only inference: the value of training_mode, where given, must be false.
void infer_dropout(InferContext& ctx) {
  if (ctx.has_input(2)) {
    const HostTensor& training = ctx.host(2);
    if (training.dtype != DType::kBool || training.shape.num_elements() != 1)
      ctx.fail(message("training_mode is ", training.dtype, training.shape, "; expected one bool"));
    if (*training.as<bool>()) fail_unsupported(ctx, "training_mode is true; export the model for inference");
  }
  ctx.set_output(0, ctx.input(0));
}

DType cast_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  if (!node.attributes.has("to")) fail_type(node, "attribute 'to' is missing; give the element type to cast to");
  return dtype_from_onnx(node, node.attributes.get_int("to", 0));
}

DType cast_like_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  return inputs[1];
}

DType dropout_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  check_type(node, inputs, 0, kFloats);
  check_type(node, inputs, 1, kFloats);
  check_type(node, inputs, 2, kBoolType);
  return inputs[0];
}

DType where_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  check_type(node, inputs, 0, kBoolType);
  check_same(node, inputs, 2, 1);
  return inputs[1];
}

// The exponent may have another type than the base.
DType pow_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  check_type(node, inputs, 0, kNumbers);
  check_type(node, inputs, 1, kNumbers);
  return inputs[0];
}

DType bit_shift_type(const Node& node, const std::vector<DType>& inputs, int output) {
  const std::string_view direction = node.attributes.get_string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    fail_type(node, "direction is '" + std::string(direction) + "'; expected LEFT or RIGHT");
  return same_type<kIntegers>(node, inputs, output);
}

void register_unary_ops(OpRegistry& r) {
  for (const char* name : {"Exp",
                           "Log",
                           "Sin",
                           "Cos",
                           "Tan",
                           "Asin",
                           "Acos",
                           "Atan",
                           "Sinh",
                           "Cosh",
                           "Asinh",
                           "Acosh",
                           "Atanh",
                           "Tanh",
                           "Sigmoid",
                           "LeakyRelu",
                           "Elu",
                           "Selu",
                           "Celu",
                           "HardSwish",
                           "Softplus",
                           "Softsign",
                           "ThresholdedRelu",
                           "Mish",
                           "Swish",
                           "HardSigmoid",
                           "Gelu"})
    r.add(OpDef(name, 1, 1, infer_same_shape, same_type<kFloats>));
  for (const char* name : {"Sqrt", "Reciprocal", "Floor", "Ceil", "Round"})
    r.add(OpDef(name, 1, 1, infer_same_shape, same_type<kFloats>).host_able());
  for (const char* name : {"Abs", "Sign"}) r.add(OpDef(name, 1, 1, infer_same_shape, same_type<kNumbers>).host_able());
  for (const char* name : {"Neg", "Relu"})
    r.add(OpDef(name, 1, 1, infer_same_shape, same_type<kSignedNumbers>).host_able());
  r.add(OpDef("Erf", 1, 1, infer_same_shape, same_type<kNumbers>));
  r.add(OpDef("Not", 1, 1, infer_same_shape, same_type<kBoolType>).host_able());
  r.add(OpDef("BitwiseNot", 1, 1, infer_same_shape, same_type<kIntegers>));
  for (const char* name : {"IsNaN", "IsInf"}) r.add(OpDef(name, 1, 1, infer_same_shape, same_type_to_bool<kFloats>));
  r.add(OpDef("Clip", 1, 3, infer_clip, same_type<kNumbers>).host_able());
  r.add(OpDef("Identity", 1, 1, infer_same_shape, same_dtype_as_first).of_kind(OpKind::kView).host_able());
  r.add(OpDef("Cast", 1, 1, infer_same_shape, cast_type).host_able());
  r.add(OpDef("CastLike", 2, 2, infer_same_shape, cast_like_type).host_able());
  r.add(OpDef("Dropout", 1, 3, infer_dropout, dropout_type).of_kind(OpKind::kView).reads_host({2}));
}

void register_binary_ops(OpRegistry& r) {
  for (const char* name : {"Add", "Sub", "Mul", "Div"})
    r.add(OpDef(name, 2, 2, infer_broadcast, same_type<kNumbers>).host_able());
  for (const char* name : {"And", "Or", "Xor"})
    r.add(OpDef(name, 2, 2, infer_broadcast, same_type<kBoolType>).host_able());
  for (const char* name : {"Less", "LessOrEqual", "Greater", "GreaterOrEqual"})
    r.add(OpDef(name, 2, 2, infer_broadcast, same_type_to_bool<kNumbers>).host_able());
  for (const char* name : {"BitwiseAnd", "BitwiseOr", "BitwiseXor"})
    r.add(OpDef(name, 2, 2, infer_broadcast, same_type<kIntegers>));
  r.add(OpDef("Equal", 2, 2, infer_broadcast, same_type_to_bool<kAnyType>).host_able());
  r.add(OpDef("Pow", 2, 2, infer_broadcast, pow_type).host_able());
  r.add(OpDef("Mod", 2, 2, infer_broadcast, same_type<kNumbers>).host_able());
  r.add(OpDef("BitShift", 2, 2, infer_broadcast, bit_shift_type));
  r.add(OpDef("PRelu", 2, 2, infer_prelu, same_type<kNumbers>));
  r.add(OpDef("Where", 3, 3, infer_broadcast_all, where_type).host_able());
  for (const char* name : {"Min", "Max", "Sum"})
    r.add(OpDef(name, 1, -1, infer_broadcast_all, same_type<kNumbers>).host_able());
  r.add(OpDef("Mean", 1, -1, infer_broadcast_all, same_type<kFloats>));
}

}  // namespace

void register_elementwise_ops(OpRegistry& r) {
  register_unary_ops(r);
  register_binary_ops(r);
}

}  // namespace asc
