#include "schedule/task_cost.h"

#include <algorithm>
#include <string>

namespace asc {
namespace {

// Rough figures of one thread with warm caches: a dense product, a recurrent step (its weights come from the
// second-level cache or beyond), element by element, and what every launch costs. Where they mislead, the race
// (stream_race.h) decides.
constexpr double kProductOperationsPerNs = 40, kRecurrentOperationsPerNs = 12, kBytesPerNs = 10, kTaskNs = 60;

bool is_product(const std::string& op) {
  return op == "MatMul" || op == "Gemm" || op == "Conv" || op == "ConvTranspose" || op == "MatMulInteger" ||
         op == "ConvInteger" || op == "MatMulNBits";
}
bool is_recurrent(const std::string& op) {
  return op == "LSTM" || op == "GRU" || op == "RNN" || op == "DynamicQuantizeLSTM";
}

// What a node works on.
struct Operands {
  std::vector<const Shape*> inputs;  // null where absent
  std::vector<bool> is_constant;
  const Shape* result = nullptr;                           // the first
  double written_bytes = 0, read_bytes = 0, elements = 0;  // elements: of the largest operand that is no constant

  double input_elements(size_t i) const {
    return i < inputs.size() && inputs[i] ? static_cast<double>(inputs[i]->num_elements()) : 0;
  }
};

Operands operands_of(const Resolver& resolver, size_t s, size_t n) {
  const PlanNode& node = resolver.plan().segments[s].nodes[n];
  const bool is_data_dependent = node.op->kind == OpKind::kDataDependent;
  Operands o;
  for (ValueId v : node.node.inputs) {
    const PlanValue* value = v == kNoValue ? nullptr : &resolver.plan().values[v];
    o.inputs.push_back(value ? &resolver.shape(v) : nullptr);
    o.is_constant.push_back(value && value->constant);
    if (!value) continue;
    o.read_bytes += static_cast<double>(resolver.bytes_of(v));
    if (!value->constant) o.elements = std::max(o.elements, o.input_elements(o.inputs.size() - 1));
  }
  for (size_t i = 0; i < node.node.outputs.size(); ++i) {
    if (node.node.outputs[i] == kNoValue) continue;
    const auto bytes = static_cast<double>(resolver.output_bytes(s, n, i));
    o.written_bytes += bytes;
    if (i == 0) o.result = is_data_dependent ? &resolver.bound(s, n, i) : &resolver.shape(node.node.outputs[i]);
    o.elements = std::max(o.elements, bytes / static_cast<double>(size_of(node.output_types[i])));
  }
  return o;
}

// 2 x results x length of the sums. The weights of a fused node's product are its first constant of rank 2 or more.
double product_operations(const std::string& op, const Operands& o) {
  const Shape *first = nullptr, *weights = nullptr;
  for (size_t i = 0; i < o.inputs.size(); ++i) {
    if (!o.inputs[i] || o.inputs[i]->rank() < 2) continue;
    if (!first) first = o.inputs[i];
    if (o.is_constant[i] && !weights) weights = o.inputs[i];
  }
  if (!first || !o.result || o.result->rank() == 0) return 0;
  const auto results = static_cast<double>(o.result->num_elements());
  if (op.find("Conv") != std::string::npos) {
    if (!weights) weights = o.inputs.size() > 1 && o.inputs[1] ? o.inputs[1] : first;
    const auto channels = std::max<int64_t>(1, (*weights)[op == "ConvTranspose" && weights->rank() > 1 ? 1 : 0]);
    return 2 * results * static_cast<double>(weights->num_elements()) / static_cast<double>(channels);
  }
  const auto columns = static_cast<double>(std::max<int64_t>(1, (*o.result)[o.result->rank() - 1]));
  const bool is_matrix = weights && weights->rank() == 2;
  const double depth = is_matrix ? static_cast<double>(weights->num_elements()) / columns
                                 : static_cast<double>((*first)[first->rank() - 1]);
  return 2 * results * depth;
}

// Operations of an element, as vector code makes them.
double element_cost(const std::string& op) {
  static const char* const kCostly[] = {"Softmax", "Sigmoid", "Tanh", "Exp",  "Gelu",     "Erf", "Pow",
                                        "Log",     "Sin",     "Cos",  "Silu", "Softplus", "Mish"};
  for (const char* costly : kCostly)
    if (op == costly) return 0.5;
  return op.find("Norm") != std::string::npos || op.find("Reduce") == 0 ? 0.3 : 0.1;
}

}  // namespace

double estimate_task_ns(const Resolver& resolver, size_t s, size_t n) {
  const PlanNode& node = resolver.plan().segments[s].nodes[n];
  const Operands o = operands_of(resolver, s, n);
  if (is_recurrent(node.node.op) && o.inputs.size() > 2 && o.inputs[0] && o.inputs[0]->rank() == 3) {
    const auto steps = static_cast<double>((*o.inputs[0])[0] * (*o.inputs[0])[1]);
    return kTaskNs + 2 * steps * (o.input_elements(1) + o.input_elements(2)) / kRecurrentOperationsPerNs;
  }
  double operations = 0, per_element = 0;
  const auto count = [&](const std::string& op) {
    if (is_product(op))
      operations += product_operations(op, o);
    else
      per_element += element_cost(op);
  };
  if (node.parts.empty())
    count(node.node.op);
  else
    for (const Node& part : node.parts) count(part.op);
  const double moved = (o.read_bytes + o.written_bytes) / kBytesPerNs;
  return kTaskNs + std::max(moved, operations / kProductOperationsPerNs + per_element * o.elements);
}

std::vector<StreamTask> make_stream_tasks(const Resolver& resolver, size_t s, double task_ns) {
  const Segment& segment = resolver.plan().segments[s];
  std::vector<StreamTask> tasks;
  std::vector<uint32_t> task_of(segment.nodes.size(), 0);  // by node
  for (size_t n = 0; n < segment.nodes.size(); ++n) {
    const PlanNode& node = segment.nodes[n];
    if (!node.is_task()) continue;
    StreamTask task;
    const int threads = resolver.tiling(s, n)->threads;
    task.is_alone = threads > 1;
    task.ns = task_ns > 0 ? task_ns : estimate_task_ns(resolver, s, n) / threads;
    for (size_t i = 0; i < node.node.inputs.size(); ++i) {
      const Slot& slot = segment.slots[node.operands[i]];
      if (slot.kind == SlotKind::kInternal || slot.kind == SlotKind::kOutput)
        task.after.push_back(task_of[static_cast<size_t>(slot.node)]);
    }
    task_of[n] = static_cast<uint32_t>(tasks.size());
    tasks.push_back(std::move(task));
  }
  return tasks;
}

}  // namespace asc
