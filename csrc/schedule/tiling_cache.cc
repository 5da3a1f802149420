#include "schedule/tiling_cache.h"

namespace asc {
namespace {

using Values = std::vector<std::shared_ptr<const HostTensor>>;

bool is_equal(const Values& a, const Values& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a[i] != !b[i]) return false;
    if (a[i] && !a[i]->same_value(*b[i])) return false;
  }
  return true;
}

}  // namespace

uint64_t TilingCache::intern(const Kernel* kernel, const PlanNode& node, const Plan& plan) {
  Instance made{kernel, node.node.attributes, node.input_types, node.output_types, node.constant_inputs, {}, {}};
  if (node.is_on_host) made.constant_inputs |= uint64_t{1} << 63;  // host tilings never pack constants
  for (size_t i = 0; i < node.node.inputs.size() && i < 64; ++i) {
    const bool is_constant = (node.constant_inputs >> i) & 1u, is_read = (node.op->host_inputs >> i) & 1u;
    const auto constant = is_constant ? plan.values[node.node.inputs[i]].constant : nullptr;
    made.constant_shapes.push_back(constant ? constant->shape : Shape{});
    made.host_values.push_back(is_read ? constant : nullptr);
  }
  auto [it, end] = instances_.equal_range(node.node.op);
  for (; it != end; ++it) {
    const Instance& e = it->second.second;
    if (e.kernel == kernel && e.constant_inputs == made.constant_inputs && e.input_types == made.input_types &&
        e.output_types == made.output_types && e.constant_shapes == made.constant_shapes &&
        e.attributes.same_value(made.attributes) && is_equal(e.host_values, made.host_values))
      return it->second.first;
  }
  const uint64_t number = next_instance_++;
  instances_.emplace(node.node.op, std::make_pair(number, std::move(made)));
  return number;
}

}  // namespace asc
