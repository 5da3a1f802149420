// Tasks whose results nobody reads but for their shapes: exporters take the shape of a state from a first step that
// they compute for nothing else. Shapes are inferred without the task.
#include <algorithm>

#include "plan/builder.h"

namespace asc {
namespace {

// Whether leaving the task out changes no result and hides no error: arithmetic on floats, which fails on no contents.
bool is_arithmetic(const LevelBuilder& b, const PlanNode& p) {
  if (!p.is_task() || p.op->kind != OpKind::kTask || p.op->name == "Extension") return false;
  bool has_floats = false;
  for (size_t i = 0; i < p.node.inputs.size(); ++i) {
    if (p.node.inputs[i] == kNoValue || (i < 64 && ((p.op->host_inputs >> i) & 1u))) continue;
    if (!is_float(b.values[p.node.inputs[i]].type.dtype)) return false;
    has_floats = true;
  }
  return has_floats;
}

bool reads_contents(const PlanNode& p) { return !(p.is_on_host && p.op->is_shape_only); }

}  // namespace

void find_unread(LevelBuilder& b) {
  std::vector<bool> is_read(b.values.size(), false);
  for (ValueId v : b.outputs) is_read[v] = true;
  for (auto p = b.nodes.rbegin(); p != b.nodes.rend(); ++p) {
    const std::vector<ValueId>& outputs = p->node.outputs;
    const bool is_any_read = std::any_of(outputs.begin(), outputs.end(), [&](ValueId v) {
      return v != kNoValue && (is_read[v] || b.values[v].is_host);
    });
    p->is_unread = !is_any_read && is_arithmetic(b, *p);
    const bool is_shape = p->is_unread || !reads_contents(*p) || (p->is_view() && !p->is_on_host && !is_any_read);
    for (size_t i = 0; i < p->node.inputs.size(); ++i) {
      const ValueId v = p->node.inputs[i];
      const bool is_on_host = i < 64 && ((p->op->host_inputs >> i) & 1u);
      if (v != kNoValue && (!is_shape || is_on_host)) is_read[v] = true;
    }
  }
}

}  // namespace asc
