// Attention as models spell it out: MatMul, scale and mask, Softmax, MatMul, and around them the transpositions, and
// for heads that share keys and values the expansions, that bring the operands into form. Found from the Softmax
// outwards. Whether the shapes are those of an attention is known only at run time, and then the device's affair.
#include <algorithm>
#include <set>
#include <string>

#include "plan/uses.h"

namespace asc {
namespace {

class AttentionFinder {
 public:
  AttentionFinder(const LevelBuilder& b, const Uses& uses, const std::vector<bool>& taken)
      : b_(b), uses_(uses), taken_(taken) {}

  // The group around a Softmax, empty where it is none of an attention.
  std::vector<int> find(int softmax) {
    if (!add(softmax) || !uses_.is_inner(result(softmax))) return {};
    ValueId weights = skip_nan_guard(result(softmax));
    const int mix = weights == kNoValue ? -1 : only_user(weights, "MatMul");
    if (mix < 0 || b_.nodes[mix].node.inputs[0] != weights || !add(mix)) return {};
    const int scores = add_scores(b_.nodes[softmax].node.inputs[0], 0);
    if (scores < 0) return {};
    // Weights are no keys: products with constants have packed copies of them, and other company.
    if (is_constant(b_.nodes[scores].node.inputs[1]) || is_constant(b_.nodes[mix].node.inputs[1])) return {};
    add_turned_result(mix);
    // From the end backwards, so that each operator's readers are all known.
    const std::vector<ValueId>& products = b_.nodes[scores].node.inputs;
    add_chain(products[1], true);
    add_chain(b_.nodes[mix].node.inputs[1], false);
    add_chain(products[0], true);
    return {members_.begin(), members_.end()};
  }

 private:
  ValueId result(int n) const { return b_.nodes[n].node.outputs[0]; }
  const std::string& op(int n) const { return b_.nodes[n].node.op; }

  bool add(int n) {
    if (taken_[n] || members_.size() == kMaxFusedSteps) return false;
    const PlanNode& p = b_.nodes[n];
    std::set<ValueId> inputs = inputs_, hosts = hosts_;
    inputs.erase(result(n));
    for (size_t i = 0; i < p.node.inputs.size(); ++i) {
      const ValueId v = p.node.inputs[i];
      if (v == kNoValue || members_.count(uses_.producer(v))) continue;
      if (!Uses::is_read_on_host(p, i))
        inputs.insert(v);
      else if (!b_.values[v].constant)
        hosts.insert(v);
    }
    if (inputs.size() + hosts.size() > kMaxFusedInputs || hosts.size() > kMaxFusedHosts) return false;
    members_.insert(n);
    inputs_ = std::move(inputs);
    hosts_ = std::move(hosts);
    return true;
  }

  // The only reader of the value, where it is that operator.
  int only_user(ValueId v, const char* name) const {
    if (!uses_.is_inner(v) || uses_.users(v).size() != 1) return -1;
    const int n = uses_.users(v).front();
    return op(n) == name && uses_.is_plain(b_.nodes[n]) ? n : -1;
  }

  // The maker of a value that only one operand of one node reads.
  int only_maker(ValueId v) const {
    const int n = v == kNoValue ? -1 : uses_.producer(v);
    return n >= 0 && uses_.is_inner(v) && uses_.users(v).size() == 1 ? n : -1;
  }

  // Where(IsNaN(v), number, v), as exporters guard rows without any key: its result; v itself where there is none.
  ValueId skip_nan_guard(ValueId v) {
    const std::vector<int>& users = uses_.users(v);
    if (users.size() != 2) return v;
    const int test = std::min(users[0], users[1]), choice = std::max(users[0], users[1]);
    if (op(test) != "IsNaN" || op(choice) != "Where" || b_.nodes[test].is_on_host || b_.nodes[choice].is_on_host)
      return kNoValue;
    const std::vector<ValueId>& in = b_.nodes[choice].node.inputs;
    if (in[0] != result(test) || in[2] != v || !is_number(in[1]) || only_maker(in[0]) != test) return kNoValue;
    return add(test) && add(choice) ? result(choice) : kNoValue;
  }

  // Down from the Softmax to the product; the product, or -1.
  int add_scores(ValueId v, int depth) {
    constexpr int kMaxDepth = 6;
    const int n = only_maker(v);
    if (n < 0 || depth == kMaxDepth || !uses_.is_plain(b_.nodes[n])) return -1;
    const std::vector<ValueId>& in = b_.nodes[n].node.inputs;
    if (op(n) == "MatMul") return add(n) ? n : -1;
    if (op(n) != "Add" && op(n) != "Mul" && op(n) != "Div") return -1;
    for (size_t side = 0; side < (op(n) == "Div" ? 1 : 2); ++side) {
      const int product = add_scores(in[side], depth + 1);
      if (product >= 0) return add(n) ? product : -1;
    }
    return -1;
  }

  // [batch, heads, rows, width] back to [batch, rows, heads, width].
  void add_turned_result(int mix) {
    const int turn = only_user(result(mix), "Transpose");
    if (turn < 0) return;
    const std::vector<int64_t>& perm = b_.nodes[turn].node.attributes.get_ints("perm");
    if (!perm.empty() && perm.back() == static_cast<int64_t>(perm.size()) - 1) add(turn);
  }

  // What brings an operand into form: views, transpositions, expansions, and factors.
  void add_chain(ValueId v, bool takes_factors) {
    static const std::set<std::string> kMoves = {"Transpose", "Expand", "Reshape", "Unsqueeze", "Squeeze"};
    for (int n = only_maker(v); n >= 0; n = only_maker(v)) {
      const PlanNode& p = b_.nodes[n];
      if (!uses_.is_plain(p) && !uses_.is_plain_view(p)) return;
      const bool is_factor = takes_factors && (op(n) == "Mul" || op(n) == "Div");
      if ((!is_factor && !kMoves.count(op(n))) || !add(n)) return;
      v = p.node.inputs[0];
    }
  }

  bool is_constant(ValueId v) const { return v != kNoValue && b_.values[v].constant != nullptr; }

  bool is_number(ValueId v) const {
    const HostTensor* c = v == kNoValue ? nullptr : b_.values[v].constant.get();
    return c && c->dtype == DType::kFloat32 && c->shape.num_elements() == 1;
  }

  const LevelBuilder& b_;
  const Uses& uses_;
  const std::vector<bool>& taken_;
  std::set<int> members_;
  std::set<ValueId> inputs_, hosts_;
};

}  // namespace

std::vector<std::vector<int>> find_attentions(const LevelBuilder& b, const Uses& uses) {
  std::vector<std::vector<int>> groups;
  std::vector<bool> taken(b.nodes.size(), false);
  for (int n = 0; n < static_cast<int>(b.nodes.size()); ++n) {
    if (b.nodes[n].node.op != "Softmax" || !uses.is_plain(b.nodes[n])) continue;
    std::vector<int> group = AttentionFinder(b, uses, taken).find(n);
    for (int member : group) taken[member] = true;
    if (!group.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace asc
