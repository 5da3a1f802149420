// Fused nodes. Operators become one where nobody else reads what is between them: runs of element-wise operators, what
// follows a product (bias, activation, residual, softmax), a normalisation and the product that reads it. A group grows
// from its last operator backwards, so that a value read twice inside the group (x * sigmoid(x)) is no obstacle.
#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>

#include "ops/channels_last.h"
#include "ops/fused.h"
#include "plan/byte_values.h"
#include "plan/fused_node.h"
#include "plan/uses.h"

namespace asc {
namespace {

enum class Role : uint8_t { kNone, kElementwise, kRows, kProduct, kRotation };

Role role_of(const std::string& op) {
  static const std::set<std::string> kRows = {"Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization",
                                              "ReduceMean"};
  static const std::set<std::string> kProducts = {"MatMul", "Gemm", "Conv", conv_last_op().name,
                                                  conv_transpose_last_op().name};
  if (is_element_wise(op) || is_conversion(op)) return Role::kElementwise;
  if (kRows.count(op)) return Role::kRows;
  return kProducts.count(op) ? Role::kProduct : Role::kNone;
}

class Fuser {
 public:
  explicit Fuser(LevelBuilder& b) : b_(b), uses_(b), group_of_(b.nodes.size(), -1), merged_(b, uses_) {
    const int count = static_cast<int>(b.nodes.size());
    std::unordered_map<const Op*, Role> known;  // looked up once each: levels have many nodes of few operators
    for (const PlanNode& p : b.nodes) {
      const auto [role, is_new] = known.try_emplace(p.op, Role::kNone);
      if (is_new) role->second = role_of(p.node.op);
      roles_.push_back(role->second != Role::kNone && can_join(p) ? role->second : Role::kNone);
    }
    for (int i = 0; i < count; ++i) mark_rotation(i);
    attentions_ = find_attentions(b, uses_);
    for (size_t i = 0; i < attentions_.size(); ++i)
      for (int n : attentions_[i]) take(n, static_cast<int>(i));
  }

  void run() {
    std::vector<PlanNode> fused;  // last first
    fused.reserve(b_.nodes.size());
    for (int root = static_cast<int>(roles_.size()) - 1; root >= 0; --root) {
      std::vector<int> group;
      if (const int found = group_of_[root]; found >= 0) {
        if (attentions_[found].back() != root) continue;
        group = attentions_[found];
      } else if (!is_taken(root)) {
        group = grow(root);
      } else {
        continue;
      }
      fused.push_back(group.size() == 1 ? std::move(b_.nodes[root]) : merged_.merge(group));
    }
    b_.nodes.assign(std::make_move_iterator(fused.rbegin()), std::make_move_iterator(fused.rend()));
  }

 private:
  // Conversions join with one scale for all.
  bool can_join(const PlanNode& p) const {
    return is_conversion(p.node.op) ? !p.is_on_host && scale_of(b_, p.node) : uses_.is_plain(p);
  }
  bool is_taken(int i) const { return taken_.count(i) != 0; }
  void take(int node, int attention) {
    taken_.insert(node);
    group_of_[node] = attention;
  }

  // The halves of rotary embeddings: Concat(Neg(Slice(x)), Slice(x)).
  void mark_rotation(int concat) {
    const PlanNode& join = b_.nodes[concat];
    if (join.node.op != "Concat" || !uses_.is_plain(join) || join.node.inputs.size() != 2) return;
    const int neg = only_producer(join.node.inputs[0], "Neg"), first = only_producer(join.node.inputs[1], "Slice");
    const int second = neg < 0 ? -1 : only_producer(b_.nodes[neg].node.inputs[0], "Slice");
    if (first < 0 || second < 0 || b_.nodes[first].node.inputs[0] != b_.nodes[second].node.inputs[0]) return;
    for (int part : {concat, first, second}) roles_[static_cast<size_t>(part)] = Role::kRotation;
  }
  int only_producer(ValueId v, const char* op) const {
    const int p = uses_.producer(v);
    return p >= 0 && b_.nodes[p].node.op == op && uses_.users(v).size() == 1 && uses_.is_plain(b_.nodes[p]) ? p : -1;
  }

  struct Group {
    std::set<int> nodes;
    std::set<int> before_product;  // members that a product of the group reads, directly or not
    std::set<ValueId> inputs, hosts;
    int products = 0, rows = 0;
    size_t elementwise = 0;  // but conversions
  };

  std::vector<int> grow(int root) {
    Group g = grow(root, false);
    if (b_.nodes[root].node.op == "QuantizeLinear" && byte_input(g) == kNoValue) {
      Group table = grow(root, true);
      if (byte_input(table) != kNoValue) g = std::move(table);
    }
    if (g.nodes.size() < 2) return {root};
    taken_.insert(g.nodes.begin(), g.nodes.end());
    return {g.nodes.begin(), g.nodes.end()};
  }

  // The only input of the group that is no constant, where it is bytes: a device may make a table of the group.
  ValueId byte_input(const Group& g) const {
    ValueId found = kNoValue;
    for (ValueId v : g.inputs) {
      if (b_.values[v].constant) continue;
      if (found != kNoValue || !is_byte(b_.values[v].type.dtype)) return kNoValue;
      found = v;
    }
    return found;
  }

  // `stops`: at bytes that alone decide the result.
  Group grow(int root, bool stops) {
    Group g;
    std::set<int> candidates;  // every reader of a candidate comes later, hence the last one is judged first
    if (roles_[root] != Role::kNone && roles_[root] != Role::kRotation) add(root, g, candidates);
    while (!candidates.empty()) {
      const int p = *candidates.rbegin();
      candidates.erase(p);
      if (stops && g.nodes.size() > 1 && byte_input(g) == b_.nodes[p].node.outputs[0]) continue;
      if (fits(p, g)) add(p, g, candidates);
    }
    return g;
  }

  void add(int p, Group& g, std::set<int>& candidates) {
    g.nodes.insert(p);
    g.products += roles_[p] == Role::kProduct;
    g.rows += roles_[p] == Role::kRows;
    g.elementwise += roles_[p] == Role::kElementwise && !is_conversion(b_.nodes[p].node.op);
    g.inputs.erase(b_.nodes[p].node.outputs[0]);
    const bool is_before = roles_[p] == Role::kProduct || g.before_product.count(p);
    add_reads(b_.nodes[p], g.inputs, g.hosts);
    for (size_t i = 0; i < b_.nodes[p].node.inputs.size(); ++i) {
      const ValueId v = b_.nodes[p].node.inputs[i];
      if (v == kNoValue || Uses::is_read_on_host(b_.nodes[p], i)) continue;
      if (uses_.producer(v) < 0) continue;
      candidates.insert(uses_.producer(v));
      if (is_before) g.before_product.insert(uses_.producer(v));
    }
  }

  // What the merged node reads for this one: data, and host values that are no constants.
  void add_reads(const PlanNode& p, std::set<ValueId>& inputs, std::set<ValueId>& hosts) const {
    for (size_t i = 0; i < p.node.inputs.size(); ++i) {
      const ValueId v = p.node.inputs[i];
      if (v == kNoValue) continue;
      if (!Uses::is_read_on_host(p, i))
        inputs.insert(v);
      else if (!b_.values[v].constant)
        hosts.insert(v);
    }
  }

  bool fits(int p, const Group& g) const {
    const PlanNode& node = b_.nodes[p];
    if (roles_[p] == Role::kNone || is_taken(p) || g.nodes.size() == kMaxFusedSteps) return false;
    const ValueId v = node.node.outputs[0];
    if (!uses_.is_inner(v)) return false;
    for (int user : uses_.users(v))
      if (!g.nodes.count(user)) return false;
    std::set<ValueId> inputs = g.inputs, hosts = g.hosts;
    inputs.erase(v);
    add_reads(node, inputs, hosts);
    return inputs.size() + hosts.size() <= kMaxFusedInputs && hosts.size() <= kMaxFusedHosts && suits(p, g);
  }

  // One product per group; before it at most a normalisation, which then is the group's first operator.
  bool suits(int p, const Group& g) const {
    if (g.before_product.count(p)) {
      const std::string& op = b_.nodes[p].node.op;
      const bool is_norm = op == "LayerNormalization" || op == "RMSNormalization";
      return is_norm && uses_.users(b_.nodes[p].node.outputs[0]).size() == 1 && roles_[first_user(p)] == Role::kProduct;
    }
    switch (roles_[p]) {
      case Role::kElementwise:
        return is_conversion(b_.nodes[p].node.op) || g.elementwise < kMaxElementwise;
      case Role::kRows:
        return g.rows < kMaxRowSteps;
      case Role::kRotation:
        return true;
      default:
        return g.products == 0;
    }
  }
  int first_user(int p) const { return uses_.users(b_.nodes[p].node.outputs[0]).front(); }

  static constexpr size_t kMaxElementwise = 16;
  static constexpr int kMaxRowSteps = 2;  // a decomposed normalisation has two means

  LevelBuilder& b_;
  const Uses uses_;
  std::vector<std::vector<int>> attentions_;
  std::vector<int> group_of_;  // by node: the attention that it belongs to, or -1
  std::vector<Role> roles_;    // by node
  std::set<int> taken_;
  FusedNodes merged_;
};

}  // namespace

bool is_element_wise(const std::string& op) {
  static const std::set<std::string> kNames = {"Abs",
                                               "Add",
                                               "Ceil",
                                               "Celu",
                                               "Clip",
                                               "Cos",
                                               "Div",
                                               "Elu",
                                               "Erf",
                                               "Exp",
                                               "Floor",
                                               "Gelu",
                                               "Log",
                                               "LeakyRelu",
                                               "Max",
                                               "Min",
                                               "Mish",
                                               "Mul",
                                               "HardSigmoid",
                                               "HardSwish",
                                               "Neg",
                                               "Pow",
                                               "Relu",
                                               "Reciprocal",
                                               "Round",
                                               "Selu",
                                               "PRelu",
                                               "Sign",
                                               "Sigmoid",
                                               "Sin",
                                               "Softplus",
                                               "Sqrt",
                                               "Sub",
                                               "Softsign",
                                               "Swish",
                                               "Tanh",
                                               "ThresholdedRelu"};
  return kNames.count(op) != 0;
}

bool is_conversion(const std::string& op) { return op == "QuantizeLinear" || op == "DequantizeLinear"; }

void fuse(LevelBuilder& b) {
  if (b.options->fuse) Fuser(b).run();
}

}  // namespace asc
