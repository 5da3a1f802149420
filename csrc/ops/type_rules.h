// Helpers for writing infer_dtype rules. They throw GraphError("[infer_dtype] <op> '<node>': …"), and UnsupportedError
// for outputs that this package does not compute.
#pragma once

#include <string>
#include <vector>

#include "ops/op.h"

namespace asc {

constexpr DTypeSet kIndexTypes = DTypeSet(DType::kInt64) | DTypeSet(DType::kInt32);
constexpr DTypeSet kBoolType = DTypeSet(DType::kBool);
constexpr DTypeSet kInt64Type = DTypeSet(DType::kInt64);

[[noreturn]] void fail_type(const Node& node, const std::string& what);
// The element type with that number in ONNX's TensorProto. Throws UnsupportedError for others (strings, complex, …).
DType dtype_from_onnx(const Node& node, int64_t number);

// Whether input i is there. An input that the registration requires is there once check_arity has passed.
inline bool is_given(const std::vector<DType>& inputs, size_t i) {
  return i < inputs.size() && inputs[i] != DType::kUndefined;
}
// Every rule begins with it: input and output counts as registered, required inputs present.
void check_arity(const Node& node, const std::vector<DType>& inputs);
// Input i, where given, is one of `allowed`.
void check_type(const Node& node, const std::vector<DType>& inputs, size_t i, DTypeSet allowed);
// Input i, where given, has the type of input `like`.
void check_same(const Node& node, const std::vector<DType>& inputs, size_t i, size_t like = 0);
// All given inputs have the type of input 0, which is one of `allowed`.
void check_all_same(const Node& node, const std::vector<DType>& inputs, DTypeSet allowed);

// All inputs and outputs share one type.
template <const DTypeSet& kAllowed>
DType same_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  check_all_same(node, inputs, kAllowed);
  return inputs[0];
}

// All inputs share one type; the outputs are bool.
template <const DTypeSet& kAllowed>
DType same_type_to_bool(const Node& node, const std::vector<DType>& inputs, int output) {
  same_type<kAllowed>(node, inputs, output);
  return DType::kBool;
}

// Data first, then indices, axes or sizes (int32 or int64); the outputs have the type of the data.
template <const DTypeSet& kAllowed>
DType indexed_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  check_type(node, inputs, 0, kAllowed);
  for (size_t i = 1; i < inputs.size(); ++i) check_type(node, inputs, i, kIndexTypes);
  return inputs[0];
}

// As indexed_type, but the outputs are int64.
template <const DTypeSet& kAllowed>
DType indexed_type_to_int64(const Node& node, const std::vector<DType>& inputs, int output) {
  indexed_type<kAllowed>(node, inputs, output);
  return DType::kInt64;
}

}  // namespace asc
