#include <algorithm>
#include <set>

#include "plan/builder.h"

namespace asc {

void skip_identities(LevelBuilder& b) {
  std::vector<ValueId> source(b.values.size());
  for (size_t v = 0; v < source.size(); ++v) source[v] = static_cast<ValueId>(v);
  for (PlanNode& p : b.nodes) {
    for (ValueId& v : p.node.inputs)
      if (v != kNoValue) v = source[v];
    for (Node& part : p.parts)
      for (ValueId& v : part.inputs)
        if (v != kNoValue) v = source[v];
    if (p.node.op == "Identity") source[p.node.outputs[0]] = p.node.inputs[0];
  }
}

void prune(LevelBuilder& b) {
  std::vector<bool> is_needed(b.values.size(), false);
  for (ValueId v : b.outputs) is_needed[v] = true;
  for (auto p = b.nodes.rbegin(); p != b.nodes.rend(); ++p) {
    bool keep = false;
    for (ValueId v : p->node.outputs) keep |= v != kNoValue && is_needed[v];
    if (!keep) {
      b.bodies.erase(static_cast<int>(p->number));
      p->op = nullptr;
      continue;
    }
    for (ValueId v : p->node.inputs)
      if (v != kNoValue) is_needed[v] = true;
  }
  const auto is_dead = [](const PlanNode& p) { return p.op == nullptr; };
  b.nodes.erase(std::remove_if(b.nodes.begin(), b.nodes.end(), is_dead), b.nodes.end());
}

// A result gets memory of its own, filled by the task that produces it. Where that task cannot fill it (the result is
// an input, a constant, a host value, a view of another result, or its size is unknown before it ran), a copy does.
void insert_result_copies(LevelBuilder& b) {
  std::vector<const PlanNode*> producer(b.values.size(), nullptr);
  for (const PlanNode& p : b.nodes)
    for (ValueId v : p.node.outputs)
      if (v != kNoValue) producer[v] = &p;
  std::set<ValueId> claimed;
  std::vector<PlanNode> copies;
  for (ValueId& out : b.outputs) {
    const ValueId root = b.values[out].root;
    const PlanNode* from = producer[root];
    if (from && from->is_task() && from->op->kind != OpKind::kDataDependent && claimed.insert(root).second) continue;
    PlanNode p;
    p.op = OpRegistry::instance().find("Identity");
    p.is_copy = true;
    p.number = (*b.next_number)++;
    p.node.op = "Identity";
    p.node.name = "copy_of_" + b.values[out].name;
    p.node.inputs = {out};
    p.node.outputs = {static_cast<ValueId>(b.values.size())};
    p.constant_inputs = b.values[out].constant ? 1 : 0;
    p.input_types = p.output_types = {b.values[out].type.dtype};
    PlanValue copy = b.values[out];
    copy.root = p.node.outputs[0];
    copy.constant = nullptr;
    copy.is_host = copy.is_read_back = copy.has_extent = false;
    b.values.push_back(copy);
    b.static_shapes.push_back(b.static_shapes[out]);
    out = p.node.outputs[0];
    copies.push_back(std::move(p));
  }
  for (PlanNode& p : copies) b.nodes.push_back(std::move(p));
}

}  // namespace asc
