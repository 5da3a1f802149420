// A compiled plan back as a graph: what folding and pruning left.
#include "ops/own.h"
#include "plan/plan.h"

namespace asc {
namespace {

class Unfolder {
 public:
  explicit Unfolder(const Plan& plan)
      : plan_(plan), ids_(plan.values.size(), kNoValue), original_(plan.values.size()) {}

  Graph run() {
    graph_.name = plan_.name;
    graph_.is_rewritten = plan_.is_rewritten;
    graph_.is_channels_last = plan_.is_channels_last;
    find_originals();
    for (ValueId v : plan_.inputs) {
      ids_[v] = add(v, nullptr);  // a body's captured constant is still its input
      graph_.add_input(ids_[v]);
    }
    for (const Segment& s : plan_.segments)
      for (const PlanNode& p : s.nodes) add_nodes(s, p);
    for (ValueId v : plan_.outputs) graph_.add_output(id(v));
    return std::move(graph_);
  }

 private:
  // Copies were inserted for results that would alias; compiling inserts them again.
  void find_originals() {
    for (size_t v = 0; v < original_.size(); ++v) original_[v] = static_cast<ValueId>(v);
    for (const Segment& s : plan_.segments)
      for (const PlanNode& p : s.nodes)
        if (p.is_copy) original_[p.node.outputs[0]] = p.node.inputs[0];
  }

  ValueId add(ValueId v, std::shared_ptr<const HostTensor> constant) {
    Value value;
    value.name = plan_.values[v].name;
    value.type = plan_.values[v].type;
    value.constant = std::move(constant);
    return graph_.add_value(std::move(value));
  }

  ValueId id(ValueId v) {
    if (v == kNoValue) return kNoValue;
    v = original_[v];
    if (ids_[v] == kNoValue) ids_[v] = add(v, plan_.values[v].constant);
    return ids_[v];
  }

  void add_nodes(const Segment& s, const PlanNode& p) {
    if (p.is_copy) return;
    const auto first = static_cast<uint32_t>(graph_.nodes().size());
    if (p.parts.empty()) add_node(s, p.node);
    for (const Node& part : p.parts) add_node(s, part);
    if (find_own_op(p.node.op) == p.op) add_own({first, static_cast<uint32_t>(p.parts.size()), p.node});
    for (const OwnNode& own : p.own) add_own({first + own.first, own.count, own.node});
  }

  void add_own(OwnNode own) {
    for (ValueId& v : own.node.inputs) v = id(v);
    for (ValueId& v : own.node.outputs) v = id(v);
    graph_.own_nodes.push_back(std::move(own));
  }

  void add_node(const Segment& s, Node n) {
    for (ValueId& v : n.inputs) v = id(v);
    for (ValueId& v : n.outputs) v = id(v);
    const std::vector<const char*> names = s.kind == SegmentKind::kIf
                                               ? std::vector<const char*>{"then_branch", "else_branch"}
                                               : std::vector<const char*>{"body"};
    for (size_t i = 0; i < s.bodies.size(); ++i)
      n.attributes.set(names.at(i), std::make_shared<Graph>(folded_graph(*s.bodies[i])));
    graph_.add_node(std::move(n));
  }

  const Plan& plan_;
  Graph graph_;
  std::vector<ValueId> ids_;       // plan value -> graph value
  std::vector<ValueId> original_;  // the value that a copy copies; others themselves
};

}  // namespace

Graph folded_graph(const Plan& plan) { return Unfolder(plan).run(); }

}  // namespace asc
