#include "runtime/support.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "kernel/kernel.h"
#include "ops/op.h"

namespace asc {
namespace {

using Types = std::vector<DType>;

class Checker {
 public:
  explicit Checker(const KernelRegistry& kernels) : kernels_(kernels) {}

  // Types of the outputs of `graph`. `inputs` may be shorter than its inputs: the rest is as declared.
  Types check(const Graph& graph, const Types& inputs) {
    Types types(graph.value_count());
    for (size_t v = 0; v < types.size(); ++v) {
      const Value& value = graph.value(static_cast<ValueId>(v));
      types[v] = value.constant ? value.constant->dtype : value.type.dtype;
    }
    for (size_t i = 0; i < inputs.size() && i < graph.inputs().size(); ++i)
      if (inputs[i] != DType::kUndefined) types[graph.inputs()[i]] = inputs[i];
    for (const Node& n : graph.nodes()) {
      const Types out = check_node(n, pick(types, n.inputs));
      for (size_t i = 0; i < n.outputs.size() && i < out.size(); ++i)
        if (n.outputs[i] != kNoValue && out[i] != DType::kUndefined) types[n.outputs[i]] = out[i];
    }
    return pick(types, graph.outputs());
  }

  std::vector<NodeSupport> take() { return std::move(found_); }

 private:
  static Types pick(const Types& types, const std::vector<ValueId>& values) {
    Types picked;
    for (ValueId v : values) picked.push_back(v == kNoValue ? DType::kUndefined : types[v]);
    return picked;
  }

  Types check_node(const Node& n, const Types& inputs) {
    NodeSupport support{n.op, n.name, inputs, ""};
    Types out;
    try {
      out = judge(n, inputs, support.why_not);
    } catch (const Error& e) {
      support.why_not = e.what();
    }
    found_.push_back(std::move(support));
    return out;
  }

  Types judge(const Node& n, const Types& inputs, std::string& why_not) {
    const Op* op = OpRegistry::instance().find(n.op);
    if (!op || (op->kind == OpKind::kControl && n.op != "If" && n.op != "Loop")) {
      why_not = "the operator is not implemented";
      return {};
    }
    if (n.op == "If") {
      const Types captures(inputs.begin() + (inputs.empty() ? 0 : 1), inputs.end());
      check(*n.attributes.get_graph("else_branch"), captures);
      return check(*n.attributes.get_graph("then_branch"), captures);
    }
    if (n.op == "Loop") {
      Types formal = inputs;
      formal.resize(std::max<size_t>(formal.size(), 2));
      formal[0] = DType::kInt64;
      formal[1] = DType::kBool;
      Types out = check(*n.attributes.get_graph("body"), formal);
      if (!out.empty()) out.erase(out.begin());  // the condition
      return out;
    }
    for (size_t i = 0; i < inputs.size(); ++i)
      if (n.inputs[i] != kNoValue && inputs[i] == DType::kUndefined) return {};
    Types out;
    for (size_t i = 0; i < n.outputs.size(); ++i) out.push_back(op->infer_dtype(n, inputs, static_cast<int>(i)));
    const bool needs_kernel = op->kind != OpKind::kView && !op->is_host_call && !out.empty();
    if (needs_kernel && !kernels_.find(n.op, inputs, out[0]))
      why_not = std::string("no kernel for ") + name_of(inputs.empty() ? out[0] : inputs[0]);
    return out;
  }

  const KernelRegistry& kernels_;
  std::vector<NodeSupport> found_;
};

}  // namespace

std::vector<NodeSupport> check_support(const Graph& graph, const Device& device) {
  Checker checker(device.kernels());
  checker.check(graph, {});
  return checker.take();
}

}  // namespace asc
