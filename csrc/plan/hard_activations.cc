// HardSigmoid and HardSwish, as older exporters spell them: Clip(x + 3, 0, 6) / 6, and that times x in either order.
#include <algorithm>
#include <cmath>

#include "plan/byte_values.h"
#include "plan/uses.h"

namespace asc {
namespace {

class Finder {
 public:
  explicit Finder(LevelBuilder& b) : b_(b), uses_(b) {}

  void run() {
    for (PlanNode& p : b_.nodes)
      if (!uses_.is_plain(p) || !try_product(p)) try_sixth(p);
  }

 private:
  bool is_number(ValueId v, float number) const {
    const HostTensor* c = constant_of(b_, v);
    return c && c->dtype == DType::kFloat32 && c->shape.num_elements() == 1 && c->shape.rank() <= 1 &&
           std::fabs(*c->as<float>() - number) <= 1e-6f * number;
  }

  // The node of that operator that makes v, which nobody else reads.
  const Node* only(ValueId v, const char* op) const {
    const int p = v == kNoValue ? -1 : uses_.producer(v);
    if (p < 0 || !uses_.is_inner(v) || uses_.users(v).size() != 1) return nullptr;
    const PlanNode& node = b_.nodes[static_cast<size_t>(p)];
    return node.node.op == op && uses_.is_plain(node) ? &node.node : nullptr;
  }

  // x where v is Clip(x + 3, 0, 6).
  ValueId clipped(ValueId v) const {
    const Node* clip = only(v, "Clip");
    if (!clip || input_of(*clip, 1) == kNoValue || !is_zero(clip->inputs[1]) || !is_number(input_of(*clip, 2), 6))
      return kNoValue;
    const Node* add = only(clip->inputs[0], "Add");
    for (size_t i : {0, 1})
      if (add && is_number(add->inputs[1 - i], 3)) return add->inputs[i];
    return kNoValue;
  }
  bool is_zero(ValueId v) const {
    const HostTensor* c = constant_of(b_, v);
    return c && c->dtype == DType::kFloat32 && c->shape.num_elements() == 1 && *c->as<float>() == 0.0f;
  }

  // What is divided by six; kNoValue: nothing is.
  ValueId dividend(const Node& n) const {
    if (n.op == "Div" && is_number(n.inputs[1], 6)) return n.inputs[0];
    for (size_t i : {0, 1})
      if (n.op == "Mul" && is_number(n.inputs[1 - i], 1.0f / 6)) return n.inputs[i];
    return kNoValue;
  }

  // x * (Clip(x + 3, 0, 6) / 6): the quotient has become a HardSigmoid.
  bool try_product(PlanNode& p) {
    for (size_t i : {0, 1}) {
      const Node* gate = p.node.op == "Mul" ? only(p.node.inputs[1 - i], "HardSigmoid") : nullptr;
      if (!gate || gate->inputs[0] != p.node.inputs[i] || !is_sixth(*gate)) continue;
      become(b_, p, "HardSwish", p.node.inputs[i]);
      return true;
    }
    return false;
  }
  static bool is_sixth(const Node& n) {
    return std::fabs(n.attributes.get_float("alpha", 0.2) - 1.0 / 6) < 1e-6 &&
           n.attributes.get_float("beta", 0.5) == 0.5;
  }

  void try_sixth(PlanNode& p) {
    const ValueId v = uses_.is_plain(p) && p.node.inputs.size() == 2 ? dividend(p.node) : kNoValue;
    if (v == kNoValue) return;
    if (const ValueId x = clipped(v); x != kNoValue) {
      become(b_, p, "HardSigmoid", x);
      p.node.attributes.set("alpha", 1.0 / 6);
      p.node.attributes.set("beta", 0.5);
      return;
    }
    const Node* product = only(v, "Mul");
    for (size_t i : {0, 1})
      if (product && clipped(product->inputs[1 - i]) == product->inputs[i])
        return become(b_, p, "HardSwish", product->inputs[i]);
  }

  LevelBuilder& b_;
  const Uses uses_;  // of the nodes as they were: what became one still makes the same value
};

}  // namespace

void find_hard_activations(LevelBuilder& b) {
  const auto is_clip = [](const PlanNode& p) { return p.node.op == "Clip"; };
  if (b.options->fuse && std::any_of(b.nodes.begin(), b.nodes.end(), is_clip)) Finder(b).run();
}

}  // namespace asc
