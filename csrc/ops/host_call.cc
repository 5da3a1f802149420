#include "ops/host_call.h"

#include "ops/infer.h"
#include "ops/type_rules.h"

namespace asc {
namespace {

HostCallFn& current() {
  static HostCallFn& fn = *new HostCallFn();  // executors may outlive static destruction
  return fn;
}

[[noreturn]] void fail(const Node& node, const std::string& what) {
  throw GraphError("[host_call] " + std::string(node.attributes.get_string("operator", node.op)) + " '" + node.name +
                   "': " + what);
}

void infer_host_call(InferContext& ctx) { ctx.fail("its shape is known only after it ran"); }

// Types are numbers of ONNX, or -1 - i for the type of input i.
DType host_call_type(const Node& node, const std::vector<DType>& inputs, int output) {
  const std::vector<int64_t>& types = node.attributes.get_ints("output_types");
  if (types.size() != node.outputs.size())
    fail_type(node, "output_types has " + std::to_string(types.size()) + " entries for " +
                        std::to_string(node.outputs.size()) + " outputs; give one for each");
  const int64_t type = types[output];
  if (type >= 0) return dtype_from_onnx(node, type);
  if (static_cast<uint64_t>(-1 - type) >= inputs.size() || inputs[-1 - type] == DType::kUndefined)
    fail_type(node, "output " + std::to_string(output) + " takes its type from input " + std::to_string(-1 - type) +
                        ", which is absent; pass it");
  return inputs[-1 - type];
}

}  // namespace

void set_host_call(HostCallFn fn) { current() = std::move(fn); }

std::vector<HostTensor> call_host(const Node& node, const std::vector<const HostTensor*>& inputs,
                                  const std::vector<DType>& output_types) {
  if (!current()) fail(node, "no callable is set; import ascendsched to have them");
  std::vector<HostTensor> results = current()(node, inputs);
  if (results.size() != output_types.size())
    fail(node, std::to_string(results.size()) + " results, expected " + std::to_string(output_types.size()) +
                   "; correct the callable");
  for (size_t i = 0; i < results.size(); ++i)
    if (node.outputs[i] != kNoValue && results[i].dtype != output_types[i])
      fail(node, "result " + std::to_string(i) + " is " + name_of(results[i].dtype) + ", declared as " +
                     name_of(output_types[i]) + "; correct the callable");
  return results;
}

void register_host_call_ops(OpRegistry& r) {
  OpDef op("HostCall", 0, -1, infer_host_call, host_call_type);
  op.is_host_call = true;
  r.add(op.outputs(1, -1));
}

}  // namespace asc
