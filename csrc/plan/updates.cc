#include "plan/updates.h"

#include <algorithm>

namespace asc {
namespace {

bool replaces_elements(const PlanNode& p) { return p.node.op == "ScatterElements" || p.node.op == "ScatterND"; }

}  // namespace

bool may_lie_over(const Plan& plan, size_t output, size_t input) {
  if (output >= plan.outputs.size() || input >= plan.inputs.size() || plan.host_inputs[input]) return false;
  const ValueId result = plan.values[plan.outputs[output]].root, source = plan.inputs[input];
  const auto is_from = [&plan](ValueId v, ValueId root) { return v != kNoValue && plan.values[v].root == root; };
  bool is_made_of_it = false;
  int64_t readers = 0;
  for (const Segment& s : plan.segments)
    for (const PlanNode& p : s.nodes) {
      // Views read nothing themselves, and the host only shapes: its contents would be part of the signature.
      if (p.is_view() || p.is_on_host) continue;
      const std::vector<ValueId>& inputs = p.node.inputs;
      readers += std::count_if(inputs.begin(), inputs.end(), [&](ValueId v) { return is_from(v, source); });
      if (replaces_elements(p) && p.node.outputs[0] == result) is_made_of_it = is_from(inputs[0], source);
    }
  return is_made_of_it && readers == 1;
}

}  // namespace asc
