// Recurrent layers that are exported as Loops multiply one step of their input by constant weights at a time, which
// reads all weights at each step. Nothing of it depends on the step before.
#include <algorithm>
#include <map>
#include <tuple>

#include "plan/loop_body.h"

namespace asc {
namespace {

constexpr int64_t kMaxBytes = int64_t{64} << 20;  // of a product of all steps, where its size is known
constexpr int64_t kMaxGrowth = 16;                // its row against that of x, where its size is not
constexpr int64_t kMaxRowsPerTrip = 2;            // rows of x that nobody reads would be multiplied, too

class Finder {
 public:
  explicit Finder(LevelBuilder& b) : b_(b), body_(b) {}

  void run() {
    const size_t count = b_.nodes.size();
    for (size_t i = 0; i < count; ++i)
      if (b_.nodes[i].node.op == "MatMul" || b_.nodes[i].node.op == "Gemm") try_product(i);
    if (gathers_.empty()) return;
    std::vector<PlanNode> nodes;
    nodes.reserve(count + gathers_.size());
    for (size_t i = 0; i < count; ++i) {
      if (const auto gather = gathers_.find(i); gather != gathers_.end()) nodes.push_back(std::move(gather->second));
      nodes.push_back(std::move(b_.nodes[i]));
    }
    b_.nodes = std::move(nodes);
  }

 private:
  using Axes = std::vector<int64_t>;

  using Counter = LoopBody::Counter;

  Counter counter(ValueId v) const {
    bool is_scalar = true;
    for (;;) {
      if (body_.is_number_of_iteration(v)) return {1, is_scalar};
      if (body_.is_carried(v)) {
        const Counter c = body_.carried(v);
        return {c.step, c.is_number && is_scalar};
      }
      const PlanNode* p = body_.producer(v);
      if (!p) return {};
      if (p->node.op == "Cast" || p->node.op == "Identity") {
        v = p->node.inputs[0];
      } else if (p->node.op == "Unsqueeze") {
        is_scalar = false;
        v = p->node.inputs[0];
      } else if (p->node.op == "Add" || p->node.op == "Sub") {
        const size_t fixed = body_.is_fixed(p->node.inputs[0]) ? 0 : 1;
        if (!body_.is_fixed(p->node.inputs[fixed])) return {};
        is_scalar = is_scalar && body_.is_number(p->node.inputs[fixed]);
        v = p->node.inputs[1 - fixed];
      } else {
        return {};
      }
    }
  }

  // A dimension of constant weights; 0 where they are no matrix.
  int64_t extent(ValueId weights, int axis) const {
    const HostTensor* w = constant_of(b_, weights);
    return w && w->shape.rank() == 2 ? w->shape[axis] : 0;
  }

  bool is_worth_it(ValueId x, int64_t inner, int64_t columns, size_t element_bytes) const {
    if (inner < 2 || columns < 2 || columns > kMaxGrowth * inner) return false;
    if (!b_.static_shapes[x]) return true;
    const Shape& s = *b_.static_shapes[x];
    if (s.rank() < 2 || s.rank() >= kMaxRank || s[s.rank() - 1] != inner) return false;
    if (b_.loop->trips >= 0 && s[0] / kMaxRowsPerTrip > b_.loop->trips) return false;
    return s.num_elements() / inner <= kMaxBytes / static_cast<int64_t>(element_bytes) / columns;
  }

  // A bias of one number, or one for each column: the same for all rows.
  bool is_row(ValueId v, int max_rank, int64_t columns) const {
    const HostTensor* c = constant_of(b_, v);
    if (!c || c->shape.rank() > max_rank) return false;
    const int64_t count = c->shape.num_elements();
    return count == 1 || (count == columns && c->shape[c->shape.rank() - 1] == columns);
  }

  void try_product(size_t i) {
    const Node& n = b_.nodes[i].node;
    const DType type = b_.nodes[i].output_types[0];
    const bool is_gemm = n.op == "Gemm";
    if ((type != DType::kFloat32 && type != DType::kFloat64) || b_.half_products.count(n.outputs[0])) return;
    StepProduct product;
    product.type = type;
    const PlanNode* row = body_.producer(n.inputs[0]);
    if (row && row->node.op == "Cast") {
      product.cast = row->node.attributes;
      row = body_.producer(row->node.inputs[0]);
    }
    Axes axes;  // of an index of one element
    if (row && row->node.op == "Squeeze") {
      axes = front_axes(input_of(row->node, 1));
      row = axes.empty() ? nullptr : body_.producer(row->node.inputs[0]);
    }
    if (!row || row->node.op != "Gather" || row->node.attributes.get_int("axis", 0) != 0) return;
    const ValueId x = row->node.inputs[0], index = row->node.inputs[1];
    if (!body_.is_captured(x) || constant_of(b_, x)) return;
    const Counter step = counter(index);
    if (step.step == 0) return;
    product.turns_weights = is_gemm && n.attributes.get_int("transB", 0) != 0;
    const int64_t inner = extent(n.inputs[1], product.turns_weights ? 1 : 0);
    const int64_t columns = extent(n.inputs[1], product.turns_weights ? 0 : 1);
    if (!is_worth_it(x, inner, columns, size_of(type))) return;
    ValueId bias = kNoValue;
    size_t last = i;
    if (is_gemm) {
      if (!step.is_number || !is_plain_gemm(n)) return;
      bias = input_of(n, 2);
      if (bias != kNoValue && !is_row(bias, 2, columns)) return;
      product.row_axis = 2;
    } else if (const int add = bias_after(n.outputs[0], columns, &bias); add >= 0) {
      last = static_cast<size_t>(add);
    }
    product.x = body_.position(x);
    product.weights = body_.outer(n.inputs[1]);
    product.bias = body_.outer(bias);
    product.name = n.name;
    axes.push_back(-2);
    read_rows(last, *row, axes, std::move(product));
  }

  // Constant axes that all count from the front; empty where they do not.
  Axes front_axes(ValueId v) const {
    const HostTensor* c = constant_of(b_, v);
    const Axes axes = c && c->dtype == DType::kInt64 ? int_values(*c) : Axes{};
    const bool is_front = std::all_of(axes.begin(), axes.end(), [](int64_t axis) { return axis >= 0; });
    return is_front ? axes : Axes{};
  }

  static bool is_plain_gemm(const Node& n) {
    return n.attributes.get_int("transA", 0) == 0 && n.attributes.get_float("alpha", 1) == 1 &&
           (input_of(n, 2) == kNoValue || n.attributes.get_float("beta", 1) == 1);
  }

  // The Add of a constant row that alone reads v; -1: there is none.
  int bias_after(ValueId v, int64_t columns, ValueId* bias) const {
    if (!body_.uses().is_inner(v) || body_.uses().users(v).size() != 1) return -1;
    const int user = body_.uses().users(v)[0];
    const Node& n = b_.nodes[static_cast<size_t>(user)].node;
    if (n.op != "Add") return -1;
    *bias = n.inputs[n.inputs[0] == v ? 1 : 0];
    if (is_row(*bias, 1, columns)) return user;
    *bias = kNoValue;
    return -1;
  }

  // The last of what moves becomes the row of this step; its other operators lose their readers.
  void read_rows(size_t last, const PlanNode& gather, const Axes& axes, StepProduct product) {
    const std::string name = product.name;
    const ValueId result = b_.nodes[last].node.outputs[0];
    const ValueId rows = add_value(b_, name + "_of_all_steps", product.type, kNoValue);
    const ValueId row = add_value(b_, name + "_row", product.type, kNoValue);
    const ValueId squeezed = add_constant(
        b_, name + "_axes", HostTensor::from(DType::kInt64, Shape{static_cast<int64_t>(axes.size())}, axes));
    const OpRegistry& ops = OpRegistry::instance();
    PlanNode pick = make_node(b_, *gather.op, name + "_row", {rows, gather.node.inputs[1]}, row);
    pick.node.attributes = gather.node.attributes;
    gathers_.emplace(last, std::move(pick));
    PlanNode squeeze = make_node(b_, *ops.find("Squeeze"), b_.nodes[last].node.name, {row, squeezed}, result);
    b_.nodes[last] = std::move(squeeze);
    b_.graph.add_input(rows);
    b_.loop->products.push_back(std::move(product));
  }

  LevelBuilder& b_;
  const LoopBody body_;
  std::map<size_t, PlanNode> gathers_;  // by the node that they go in front of
};

// Adds what is computed before a Loop.
class Outside {
 public:
  Outside(LevelBuilder& b, const PlanNode& loop) : b_(b), inputs_(loop.node.inputs), prefix_(loop.node.name + "/") {}

  ValueId add(const StepProduct& p) {
    const std::string name = prefix_ + p.name;
    const ValueId x = with_rows(p, name);
    ValueId w = value(p.weights, name + "_weights");
    if (p.turns_weights) w = node("Transpose", name + "_turned", {w}, p.type);
    Attributes mark;
    mark.set(kOfAllSteps, int64_t{1});
    const ValueId product = node("MatMul", name, {x, w}, p.type, std::move(mark));
    if (p.bias.input < 0 && !p.bias.constant) return product;
    return node("Add", name + "_bias", {product, value(p.bias, name + "_c")}, p.type);
  }

 private:
  // What is multiplied, made once for all products that read it.
  ValueId with_rows(const StepProduct& p, const std::string& name) {
    ValueId x = inputs_[static_cast<size_t>(p.x)];
    ValueId& made =
        with_rows_.try_emplace({x, p.cast ? p.type : DType::kUndefined, p.row_axis}, kNoValue).first->second;
    if (made != kNoValue) return made;
    if (p.cast) x = node("Cast", name + "_cast", {x}, p.type, *p.cast);
    const HostTensor axis = HostTensor::from(DType::kInt64, Shape{1}, std::vector<int64_t>{p.row_axis});
    return made = node("Unsqueeze", name + "_rows", {x, add_constant(b_, name + "_axes", axis)}, p.type);
  }

  ValueId value(const OuterValue& v, std::string name) {
    if (v.input >= 0) return inputs_[static_cast<size_t>(v.input)];
    return add_constant(b_, std::move(name), *v.constant);
  }

  ValueId node(const char* op, const std::string& name, std::vector<ValueId> inputs, DType type,
               Attributes attributes = {}) {
    Node n;
    n.op = op;
    n.name = name;
    n.inputs = std::move(inputs);
    n.outputs = {add_value(b_, name, type, kNoValue)};
    n.attributes = std::move(attributes);
    const ValueId result = n.outputs[0];
    add_node(b_, std::move(n));
    return result;
  }

  LevelBuilder& b_;
  const std::vector<ValueId> inputs_;
  const std::string prefix_;
  std::map<std::tuple<ValueId, DType, int64_t>, ValueId> with_rows_;
};

}  // namespace

void find_step_products(LevelBuilder& body) {
  if (!body.loop || !body.options->hoist) return;
  Finder(body).run();
  prune(body);
}

void add_step_products(LevelBuilder& b, PlanNode& loop, const LoopSteps& steps) {
  if (steps.products.empty()) return;
  Outside outside(b, loop);
  Node& n = loop.node;
  for (const StepProduct& p : steps.products) {
    n.inputs.push_back(outside.add(p));
    loop.input_types.push_back(p.type);
  }
  const auto added = static_cast<int64_t>(steps.products.size());
  n.attributes.set("num_captures", n.attributes.get_int("num_captures", 0) + added);
}

}  // namespace asc
