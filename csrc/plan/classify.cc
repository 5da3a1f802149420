// Host or data, by need. A value is a host value where a shape, a tiling or a branch needs its contents; the need
// spreads backwards through cheap shape arithmetic. Where it meets anything else, the value is computed on the device
// and read back at a sync point.
#include "plan/builder.h"

namespace asc {
namespace {

class Classifier {
 public:
  explicit Classifier(LevelBuilder& b) : b_(b), producer_(b.values.size(), -1), derivable_(b.values.size(), kUnknown) {
    for (size_t i = 0; i < b.nodes.size(); ++i)
      for (ValueId v : b.nodes[i].node.outputs)
        if (v != kNoValue) producer_[v] = static_cast<int>(i);
  }

  void run() {
    for (PlanNode& p : b_.nodes) {
      if (p.op->kind == OpKind::kControl) {
        need_control(p);
        continue;
      }
      if (p.op->is_host_call) {
        compute_on_host(p);
        continue;
      }
      for (size_t i = 0; i < p.node.inputs.size() && i < 64; ++i)
        if ((p.op->host_inputs >> i) & 1u) need(p.node.inputs[i]);
      if (p.op->kind == OpKind::kDataDependent)
        for (ValueId v : p.node.outputs)
          if (v != kNoValue) b_.values[v].has_extent = true;
    }
    for (size_t i = 0; i < b_.outputs.size(); ++i)
      if (b_.host_outputs[i]) need(b_.outputs[i]);
  }

 private:
  enum State : uint8_t { kUnknown, kNo, kYes };

  void need_control(const PlanNode& p) {
    need(p.node.inputs[0]);
    const size_t first = p.node.op == "If" ? 1 : 2;
    if (first == 2) need(p.node.inputs[1]);
    const size_t skipped = p.node.op == "If" ? 0 : 2;  // a loop body starts with iteration and condition
    for (const auto& body : b_.bodies[static_cast<int>(p.number)])
      for (size_t i = skipped; i < body->inputs.size(); ++i)
        if (body->host_inputs[i]) need(p.node.inputs[first + i - skipped]);
  }

  void need(ValueId v) {
    if (v == kNoValue || b_.values[v].constant || b_.values[v].is_host) return;
    b_.values[v].is_host = true;
    if (producer_[v] < 0) return;  // an input: the caller's memory is readable
    PlanNode& p = b_.nodes[producer_[v]];
    if (!is_derivable(v)) {
      b_.values[v].is_read_back = true;
      return;
    }
    compute_on_host(p);
  }

  void compute_on_host(PlanNode& p) {
    p.is_on_host = true;
    for (ValueId o : p.node.outputs)
      if (o != kNoValue) b_.values[o].is_host = true;
    if (p.op->is_shape_only) return;
    for (ValueId i : p.node.inputs) need(i);
  }

  bool is_derivable(ValueId v) {
    if (v == kNoValue || b_.values[v].constant) return true;
    if (producer_[v] < 0) return !is_float(b_.values[v].type.dtype);
    if (derivable_[v] == kUnknown) {
      const PlanNode& p = b_.nodes[producer_[v]];
      bool yes = p.op->is_shape_only || p.op->is_host_call;
      if (!yes && p.op->is_host_able) {
        yes = true;
        for (ValueId i : p.node.inputs) yes = yes && is_derivable(i);
      }
      derivable_[v] = yes ? kYes : kNo;
    }
    return derivable_[v] == kYes;
  }

  LevelBuilder& b_;
  std::vector<int> producer_;
  std::vector<uint8_t> derivable_;
};

}  // namespace

void classify(LevelBuilder& b) { Classifier(b).run(); }

void find_roots(LevelBuilder& b) {
  for (const PlanNode& p : b.nodes)
    if (p.is_view() && !p.is_on_host) b.values[p.node.outputs[0]].root = b.values[p.node.inputs[0]].root;
}

}  // namespace asc
