// Who makes and who reads each value of a level, as the passes that fuse operators ask it. Valid while the level's
// nodes are as they were.
#pragma once

#include <vector>

#include "ops/fused.h"
#include "plan/builder.h"

namespace asc {

class Uses {
 public:
  explicit Uses(const LevelBuilder& b)
      : b_(b), producer_(b.values.size(), -1), users_(b.values.size()), is_result_(b.values.size(), false) {
    for (int i = 0; i < static_cast<int>(b.nodes.size()); ++i) {
      for (ValueId v : b.nodes[i].node.outputs)
        if (v != kNoValue) producer_[v] = i;
      for (ValueId v : b.nodes[i].node.inputs)
        if (v != kNoValue) users_[v].push_back(i);
    }
    for (ValueId v : b.outputs) is_result_[v] = true;
  }

  // The node that makes the value, -1 for inputs and constants.
  int producer(ValueId v) const { return producer_[v]; }
  // The nodes that read it, once for each operand.
  const std::vector<int>& users(ValueId v) const { return users_[v]; }
  // Whether only nodes of the level's tasks see it: no result of the model, and not needed on the host.
  bool is_inner(ValueId v) const { return !is_result_[v] && !b_.values[v].is_host; }

  static bool is_read_on_host(const PlanNode& p, size_t i) { return i < 64 && ((p.op->host_inputs >> i) & 1u); }

  // A task on float32 with one result; whatever else it reads is known on the host.
  bool is_plain(const PlanNode& p) const { return p.op->kind == OpKind::kTask && is_float(p); }
  // Likewise a view.
  bool is_plain_view(const PlanNode& p) const { return p.op->kind == OpKind::kView && is_float(p); }

 private:
  bool is_float(const PlanNode& p) const {
    if (p.is_on_host || p.node.outputs.size() != 1 || p.node.inputs.size() > kMaxStepInputs) return false;
    if (p.output_types[0] != DType::kFloat32) return false;
    for (size_t i = 0; i < p.node.inputs.size(); ++i) {
      const ValueId v = p.node.inputs[i];
      if (v == kNoValue) continue;
      if (is_read_on_host(p, i) ? !b_.values[v].constant && !b_.values[v].is_host : p.input_types[i] != DType::kFloat32)
        return false;
    }
    return true;
  }

  const LevelBuilder& b_;
  std::vector<int> producer_;
  std::vector<std::vector<int>> users_;
  std::vector<bool> is_result_;
};

// attention.cc: the operators of each attention that the level spells out, in order, without overlap: the products,
// what is between them, and what brings keys, values and queries into their form.
std::vector<std::vector<int>> find_attentions(const LevelBuilder& b, const Uses& uses);

}  // namespace asc
