// Fused nodes. Operators become one where nobody else reads what is between them: runs of element-wise operators, what
// follows a product (bias, activation, residual, softmax), a normalisation and the product that reads it. A group grows
// from its last operator backwards, so that a value read twice inside the group (x * sigmoid(x)) is no obstacle.
#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "ops/fused.h"
#include "plan/builder.h"

namespace asc {
namespace {

enum class Role : uint8_t { kNone, kElementwise, kRows, kProduct, kRotation };

Role role_of(const PlanNode& p) {
  static const std::set<std::string> kRows = {"Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization",
                                              "ReduceMean"};
  static const std::set<std::string> kProducts = {"MatMul", "Gemm", "Conv"};
  if (is_element_wise(p.node.op)) return Role::kElementwise;
  if (kRows.count(p.node.op)) return Role::kRows;
  return kProducts.count(p.node.op) ? Role::kProduct : Role::kNone;
}

class Fuser {
 public:
  explicit Fuser(LevelBuilder& b)
      : b_(b), producer_(b.values.size(), -1), users_(b.values.size()), is_result_(b.values.size(), false) {
    const int count = static_cast<int>(b.nodes.size());
    for (int i = 0; i < count; ++i) {
      for (ValueId v : b.nodes[i].node.outputs)
        if (v != kNoValue) producer_[v] = i;
      for (ValueId v : b.nodes[i].node.inputs)
        if (v != kNoValue) users_[v].push_back(i);
      roles_.push_back(is_plain(b.nodes[i]) ? role_of(b.nodes[i]) : Role::kNone);
    }
    for (ValueId v : b.outputs) is_result_[v] = true;
    for (int i = 0; i < count; ++i) mark_rotation(i);
  }

  void run() {
    std::vector<PlanNode> fused;  // last first
    fused.reserve(b_.nodes.size());
    for (int root = static_cast<int>(roles_.size()) - 1; root >= 0; --root) {
      if (is_taken(root)) continue;
      const std::vector<int> group = grow(root);
      fused.push_back(group.size() == 1 ? std::move(b_.nodes[root]) : merge(group));
    }
    b_.nodes.assign(std::make_move_iterator(fused.rbegin()), std::make_move_iterator(fused.rend()));
  }

 private:
  // A task on float32 with one result; whatever else it reads is a constant.
  bool is_plain(const PlanNode& p) const {
    if (p.op->kind != OpKind::kTask || p.is_on_host || p.node.outputs.size() != 1) return false;
    if (p.node.inputs.size() > kMaxStepInputs || p.output_types[0] != DType::kFloat32) return false;
    for (size_t i = 0; i < p.node.inputs.size(); ++i) {
      const ValueId v = p.node.inputs[i];
      if (v == kNoValue) continue;
      if (is_read_on_host(p, i) ? !b_.values[v].constant : p.input_types[i] != DType::kFloat32) return false;
    }
    return true;
  }

  static bool is_read_on_host(const PlanNode& p, size_t i) { return (p.op->host_inputs >> i) & 1u; }
  bool is_taken(int i) const { return taken_.count(i) != 0; }

  // The halves of rotary embeddings: Concat(Neg(Slice(x)), Slice(x)).
  void mark_rotation(int concat) {
    const PlanNode& join = b_.nodes[concat];
    if (join.node.op != "Concat" || !is_plain(join) || join.node.inputs.size() != 2) return;
    const int neg = only_producer(join.node.inputs[0], "Neg"), first = only_producer(join.node.inputs[1], "Slice");
    const int second = neg < 0 ? -1 : only_producer(b_.nodes[neg].node.inputs[0], "Slice");
    if (first < 0 || second < 0 || b_.nodes[first].node.inputs[0] != b_.nodes[second].node.inputs[0]) return;
    for (int part : {concat, first, second}) roles_[static_cast<size_t>(part)] = Role::kRotation;
  }
  int only_producer(ValueId v, const char* op) const {
    const int p = producer_[v];
    return p >= 0 && b_.nodes[p].node.op == op && users_[v].size() == 1 && is_plain(b_.nodes[p]) ? p : -1;
  }

  struct Group {
    std::set<int> nodes;
    std::set<int> before_product;  // members that a product of the group reads, directly or not
    std::set<ValueId> inputs;
    int products = 0, rows = 0;
  };

  std::vector<int> grow(int root) {
    Group g;
    std::set<int> candidates;  // every reader of a candidate comes later, hence the last one is judged first
    if (roles_[root] != Role::kNone && roles_[root] != Role::kRotation) add(root, g, candidates);
    while (!candidates.empty()) {
      const int p = *candidates.rbegin();
      candidates.erase(p);
      if (fits(p, g)) add(p, g, candidates);
    }
    if (g.nodes.size() < 2) return {root};
    taken_.insert(g.nodes.begin(), g.nodes.end());
    return {g.nodes.begin(), g.nodes.end()};
  }

  void add(int p, Group& g, std::set<int>& candidates) {
    g.nodes.insert(p);
    g.products += roles_[p] == Role::kProduct;
    g.rows += roles_[p] == Role::kRows;
    g.inputs.erase(b_.nodes[p].node.outputs[0]);
    const bool is_before = roles_[p] == Role::kProduct || g.before_product.count(p);
    for (size_t i = 0; i < b_.nodes[p].node.inputs.size(); ++i) {
      const ValueId v = b_.nodes[p].node.inputs[i];
      if (v == kNoValue || is_read_on_host(b_.nodes[p], i)) continue;
      g.inputs.insert(v);
      if (producer_[v] < 0) continue;
      candidates.insert(producer_[v]);
      if (is_before) g.before_product.insert(producer_[v]);
    }
  }

  bool fits(int p, const Group& g) const {
    const PlanNode& node = b_.nodes[p];
    if (roles_[p] == Role::kNone || is_taken(p) || g.nodes.size() == kMaxFusedSteps) return false;
    const ValueId v = node.node.outputs[0];
    if (is_result_[v] || b_.values[v].is_host) return false;
    for (int user : users_[v])
      if (!g.nodes.count(user)) return false;
    std::set<ValueId> inputs = g.inputs;
    inputs.erase(v);
    for (size_t i = 0; i < node.node.inputs.size(); ++i)
      if (node.node.inputs[i] != kNoValue && !is_read_on_host(node, i)) inputs.insert(node.node.inputs[i]);
    return inputs.size() <= kMaxFusedInputs && suits(p, g);
  }

  // One product per group; before it at most a normalisation, which then is the group's first operator.
  bool suits(int p, const Group& g) const {
    if (g.before_product.count(p)) {
      const std::string& op = b_.nodes[p].node.op;
      const bool is_norm = op == "LayerNormalization" || op == "RMSNormalization";
      return is_norm && users_[b_.nodes[p].node.outputs[0]].size() == 1 && roles_[first_user(p)] == Role::kProduct;
    }
    switch (roles_[p]) {
      case Role::kElementwise:
        return g.nodes.size() - static_cast<size_t>(g.products + g.rows) < kMaxElementwise;
      case Role::kRows:
        return g.rows < kMaxRowSteps;
      case Role::kRotation:
        return true;
      default:
        return g.products == 0;
    }
  }
  int first_user(int p) const { return users_[b_.nodes[p].node.outputs[0]].front(); }

  // --- the merged node -----------------------------------------------------------------------------------------------

  PlanNode merge(const std::vector<int>& group) {
    PlanNode fused;
    fused.op = &fused_op();
    fused.number = b_.nodes[group.back()].number;
    fused.node.op = fused.op->name;
    fused.node.outputs = b_.nodes[group.back()].node.outputs;
    fused.output_types = {DType::kFloat32};
    fused.node.attributes.set("body", find_body(group, fused));
    for (int i : group) {
      fused.node.name += (fused.node.name.empty() ? "" : " + ") + b_.nodes[i].node.name;
      fused.parts.push_back(std::move(b_.nodes[i].node));
    }
    return fused;
  }

  // The body of the group; sets the node's inputs.
  std::shared_ptr<Graph> find_body(const std::vector<int>& group, PlanNode& fused) {
    auto body = std::make_shared<FusedBody>();
    std::vector<PlanNode> steps;
    for (int n : group) steps.push_back(simplified(b_.nodes[n]));
    std::vector<ValueId> ids(b_.values.size(), kNoValue);
    const auto is_inside = [&](ValueId v) {
      return producer_[v] >= 0 && std::binary_search(group.begin(), group.end(), producer_[v]);
    };
    for (const PlanNode& step : steps)
      for (size_t i = 0; i < step.node.inputs.size(); ++i) {
        const ValueId v = step.node.inputs[i];
        if (v == kNoValue || ids[v] != kNoValue || is_read_on_host(step, i) || is_inside(v)) continue;
        ids[v] = body->add_value({});
        body->add_input(ids[v]);
        if (b_.values[v].constant) fused.constant_inputs |= uint64_t{1} << fused.node.inputs.size();
        fused.node.inputs.push_back(v);
        fused.input_types.push_back(DType::kFloat32);
      }
    for (int n : group) ids[b_.nodes[n].node.outputs[0]] = body->add_value({});
    body->add_output(ids[b_.nodes[group.back()].node.outputs[0]]);
    for (const PlanNode& step : steps) body->add_node(make_step(step, ids, *body));
    for (const PlanNode& step : steps) body->ops.push_back(step.op);
    return share(std::move(body));
  }

  // The value of a constant that is one number; 0 for everything else.
  float constant_number(ValueId v) const {
    const HostTensor* c = v == kNoValue ? nullptr : b_.values[v].constant.get();
    return c && c->dtype == DType::kFloat32 && c->shape.rank() == 0 ? *c->as<float>() : 0.0f;
  }

  // The simplest spelling: kernels then need not know what a constant holds.
  PlanNode simplified(const PlanNode& p) const {
    PlanNode s = p;
    if (p.node.op == "Pow" && constant_number(p.node.inputs[1]) == 2.0f) {
      s.op = OpRegistry::instance().find("Mul");
      s.node.inputs[1] = s.node.inputs[0];
    } else if (p.node.op == "Div" && constant_number(p.node.inputs[0]) == 1.0f) {
      s.op = OpRegistry::instance().find("Reciprocal");
      s.node.inputs.erase(s.node.inputs.begin());
    }
    s.node.op = s.op->name;
    return s;
  }

  // A body may outlive the model, and with it the file that holds the constant.
  static std::shared_ptr<const HostTensor> copy_of(const HostTensor& t) {
    HostTensor copy = HostTensor::allocate(t.dtype, t.shape);
    if (t.bytes()) std::memcpy(copy.mutable_data(), t.data(), t.bytes());
    return std::make_shared<const HostTensor>(std::move(copy));
  }

  Node make_step(const PlanNode& p, const std::vector<ValueId>& ids, Graph& body) const {
    Node step = p.node;
    step.name.clear();
    step.outputs[0] = ids[p.node.outputs[0]];
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      if (p.node.inputs[i] == kNoValue) continue;
      if (!is_read_on_host(p, i)) {
        step.inputs[i] = ids[p.node.inputs[i]];
        continue;
      }
      Value constant;
      constant.constant = copy_of(*b_.values[p.node.inputs[i]].constant);
      step.inputs[i] = body.add_value(std::move(constant));
    }
    return step;
  }

  // An equal body made before, so that nodes of the same structure share it.
  std::shared_ptr<Graph> share(std::shared_ptr<FusedBody> made) {
    std::string key;
    for (const Node& step : made->nodes()) key += step.op + " ";
    auto [it, end] = bodies_.equal_range(key);
    for (; it != end; ++it)
      if (it->second->same_structure(*made)) return it->second;
    bodies_.emplace(std::move(key), made);
    return made;
  }

  static constexpr size_t kMaxElementwise = 16;
  static constexpr int kMaxRowSteps = 2;  // a decomposed normalisation has two means

  LevelBuilder& b_;
  std::vector<int> producer_;            // by value: node, or -1
  std::vector<std::vector<int>> users_;  // by value: nodes
  std::vector<bool> is_result_;
  std::vector<Role> roles_;  // by node
  std::set<int> taken_;
  std::multimap<std::string, std::shared_ptr<FusedBody>> bodies_;
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

void fuse(LevelBuilder& b) {
  if (b.options->fuse) Fuser(b).run();
}

}  // namespace asc
