// Operators that packages bring, in C: nodes "Extension" with the operator's name in attribute "extension" and its
// number here in "extension_number". Registered for the life of the process.
#pragma once

#include <functional>
#include <string>

#include "ops/c_operator.h"
#include "ops/op.h"

namespace asc {

// Checks the operator and returns its number. Callers take turns (the bindings: Python's lock), and hand the number on
// to other threads in the ways that graphs take. Throws PlanError for another version or an operator that lacks a part.
int64_t add_extension(const asc_operator* op);

// Of a node "Extension". Throws GraphError where its number is not known or is another operator's: files of graphs hold
// numbers of the process that wrote them.
const asc_operator& extension_of(const Node& node);

// How functions of operators see nodes. Throws GraphError with `where` and the operator's own words where one fails.
class ExtensionCall {
 public:
  ExtensionCall(const Node& node, const char* where);
  asc_context* context() { return &context_; }
  // Calls a function of the operator's that returns a status.
  void check(const std::function<int()>& function);
  [[noreturn]] void fail(const std::string& what) const;

 private:
  asc_context context_;
  const Node& node_;
  const char* where_;
};

// How functions in C see a node. Lives no longer than the node.
asc_context make_context(const Node& node);
int32_t onnx_number(DType dtype);  // 0: kUndefined
// Without data.
asc_tensor describe(DType dtype, const Shape& shape);

}  // namespace asc
