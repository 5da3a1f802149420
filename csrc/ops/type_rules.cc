// Checks behind the infer_dtype rules.
#include "ops/type_rules.h"

namespace asc {
namespace {

[[noreturn]] void fail_input(const Node& node, size_t i, const std::string& what) {
  fail_type(node, "input " + std::to_string(i) + " " + what);
}

std::string names_of(DTypeSet set) {
  std::string s;
  for (int t = 1; t < kDTypeCount; ++t)
    if (set.contains(static_cast<DType>(t))) s += (s.empty() ? "" : ", ") + std::string(name_of(static_cast<DType>(t)));
  return s;
}

}  // namespace

void fail_type(const Node& node, const std::string& what) {
  throw GraphError("[infer_dtype] " + node.op + " '" + node.name + "': " + what);
}

DType dtype_from_onnx(const Node& node, int64_t number) {
  constexpr DType kTypes[] = {DType::kUndefined, DType::kFloat32, DType::kUInt8,  DType::kInt8,      DType::kUInt16,
                              DType::kInt16,     DType::kInt32,   DType::kInt64,  DType::kUndefined, DType::kBool,
                              DType::kFloat16,   DType::kFloat64, DType::kUInt32, DType::kUInt64,    DType::kUndefined,
                              DType::kUndefined, DType::kBFloat16};
  constexpr int64_t kCount = sizeof kTypes / sizeof kTypes[0];
  if (number < 1 || number >= kCount || kTypes[number] == DType::kUndefined)
    throw UnsupportedError("[infer_dtype] " + node.op + " '" + node.name + "': element type number " +
                           std::to_string(number) + " is not supported; use one of " + names_of(kAnyType));
  return kTypes[number];
}

void check_arity(const Node& node, const std::vector<DType>& inputs) {
  const Op* op = OpRegistry::instance().find(node.op);
  if (!op) fail_type(node, "unknown operator; see the list of supported operators");
  const int in = static_cast<int>(inputs.size()), out = static_cast<int>(node.outputs.size());
  const std::string at_most = op->max_inputs < 0 ? "or more" : "to " + std::to_string(op->max_inputs);
  if (in < op->min_inputs || (op->max_inputs >= 0 && in > op->max_inputs))
    fail_type(node, std::to_string(in) + " inputs; expected " + std::to_string(op->min_inputs) + " " + at_most);
  if (out < op->min_outputs)
    fail_type(node, std::to_string(out) + " outputs; expected at least " + std::to_string(op->min_outputs));
  if (op->max_outputs >= 0 && out > op->max_outputs)
    throw UnsupportedError("[infer_dtype] " + node.op + " '" + node.name + "': " + std::to_string(out) +
                           " outputs; only the first " + std::to_string(op->max_outputs) +
                           " are computed; remove the use of the others");
  const int required = op->max_inputs < 0 ? in : op->min_inputs;
  for (int i = 0; i < required; ++i)
    if (inputs[i] == DType::kUndefined) fail_input(node, i, "is absent or has no element type; connect it");
}

void check_type(const Node& node, const std::vector<DType>& inputs, size_t i, DTypeSet allowed) {
  if (is_given(inputs, i) && !allowed.contains(inputs[i]))
    fail_input(node, i, std::string("is ") + name_of(inputs[i]) + "; expected one of " + names_of(allowed));
}

void check_same(const Node& node, const std::vector<DType>& inputs, size_t i, size_t like) {
  if (is_given(inputs, i) && inputs[i] != inputs[like])
    fail_input(node, i,
               std::string("is ") + name_of(inputs[i]) + " but input " + std::to_string(like) + " is " +
                   name_of(inputs[like]) + "; insert a Cast");
}

void check_all_same(const Node& node, const std::vector<DType>& inputs, DTypeSet allowed) {
  check_type(node, inputs, 0, allowed);
  for (size_t i = 1; i < inputs.size(); ++i) check_same(node, inputs, i);
}

DType same_dtype_as_first(const Node& node, const std::vector<DType>& inputs, int output) {
  return same_type<kAnyType>(node, inputs, output);
}

}  // namespace asc
