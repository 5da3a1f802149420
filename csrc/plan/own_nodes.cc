// Nodes of our own in the graph of a saved file. Who wrote the file is not known: what the passes that make such nodes
// see to, and rules of shapes do not, is checked here. Which dimensions fit is told when shapes are, as for all nodes.
#include <cmath>

#include "ops/channels_last.h"
#include "ops/half.h"
#include "ops/own.h"
#include "ops/quantized.h"
#include "plan/byte_values.h"

namespace asc {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw GraphError("[compile] the graph was not saved by this package: " + what + "; save it again");
}

class Checker {
 public:
  Checker(const LevelBuilder& b, const PlanNode& p) : b_(b), p_(p) {}

  void run() const {
    const std::string& op = p_.op->name;
    if (op == conv_last_op().name || op == conv_transpose_last_op().name)
      check_conv_last(op != conv_last_op().name);
    else if (op == pool_last_op().name)
      check_pool_last();
    else if (op == byte_pool_op().name)
      check_byte_pool();
    else if (op == quantized_conv_op().name || op == quantized_matmul_op().name)
      check_quantized(op == quantized_conv_op().name);
    else
      check_bfloat16_product();
  }

 private:
  void require(bool holds, const char* what) const {
    if (!holds) fail(p_.op->name + " '" + p_.node.name + "': " + what);
  }
  bool has(size_t i) const { return input_of(p_.node, i) != kNoValue; }
  DType type(size_t i) const { return has(i) ? p_.input_types[i] : DType::kUndefined; }
  DType result() const { return p_.output_types[0]; }
  const HostTensor* constant(size_t i) const { return constant_of(b_, input_of(p_.node, i)); }
  void require_types(std::initializer_list<size_t> inputs, DType wanted) const {
    for (size_t i : inputs) require(!has(i) || type(i) == wanted, "the type of an operand is another one");
  }
  void require_numbers(std::initializer_list<size_t> inputs) const {
    for (size_t i : inputs)
      require(constant(i) && constant(i)->shape.num_elements() == 1, "a scale or zero point is no constant number");
  }
  void require_mode(std::initializer_list<std::string_view> modes) const {
    const std::string_view mode = p_.node.attributes.get_string("mode", "");
    require(std::find(modes.begin(), modes.end(), mode) != modes.end(), "the mode is unknown");
  }

  void check_conv_last(bool is_transposed) const {
    require_types({0, 1, 2}, DType::kFloat32);
    require(result() == DType::kFloat32, "the result is no float32");
    const HostTensor *w = constant(1), *bias = constant(2);
    require(w && w->shape.rank() >= 3 && w->shape.rank() <= 5 && w->shape.num_elements() != 0,
            "the weights are no constant of rank 3, 4 or 5");
    if (!has(2)) return;
    require(bias && bias->shape.rank() == 1, "the bias is no constant vector");
    const int64_t channels = bias->shape[0], per_group = w->shape[1];
    require(is_transposed ? channels % per_group == 0 && channels / per_group == p_.node.attributes.get_int("group", 1)
                          : channels == w->shape[0],
            "the bias does not fit the weights");
  }

  void check_pool_last() const {
    require(type(0) == DType::kFloat32 && result() == DType::kFloat32, "operand or result is no float32");
    require_mode({"max", "average", "global"});
  }

  // The larger of bytes, or their average, which has scales.
  void check_byte_pool() const {
    enum { kX, kXScale, kXZero, kYScale, kYZero };
    require(is_byte(type(kX)) && result() == type(kX), "operand and result are no bytes of one type");
    if (p_.node.inputs.size() == 1) return require_mode({"max"});
    require_mode({"average", "global"});
    require_types({kXScale, kYScale}, DType::kFloat32);
    require_types({kXZero, kYZero}, type(kX));
    require_numbers({kXScale, kYScale});
    for (size_t i : {kXZero, kYZero})
      if (has(i)) require_numbers({i});
  }

  // Scales, bias and rounding come one with the other; shapes of numbers are the rules' affair.
  void check_quantized(bool is_conv) const {
    require(is_byte(type(kQuantX)) && is_byte(type(kQuantW)), "an operand is no byte");
    require_types({kQuantXZero}, type(kQuantX));
    require_types({kQuantWZero}, type(kQuantW));
    require_types({kQuantScale, kQuantBias, kQuantYScale}, DType::kFloat32);
    const bool is_scaled = has(kQuantScale), rounds = has(kQuantYScale);
    require(is_scaled || (is_conv && !has(kQuantBias)), "it has no scale");
    require(is_scaled || !rounds, "sums are rounded");
    require(rounds ? is_byte(result()) : result() == (is_scaled ? DType::kFloat32 : DType::kInt32),
            "the type of the result is another one");
    require(rounds || !has(kQuantYZero), "a zero point has no scale");
    require_types({kQuantYZero}, result());
    const HostTensor* w = constant(kQuantW);
    const int rank = w ? w->shape.rank() : 0;
    require(!w || w->shape.num_elements() != 0, "the weights are empty");
    require(!w || !has(kQuantWZero) || constant(kQuantWZero), "the zero point of constant weights is computed");
    require(!is_conv || (rank >= 3 && rank <= 5), "the weights are no constant of rank 3 to 5");
    for (const char* name : {"low", "high"}) p_.node.attributes.get_float(name, 0);
  }

  void check_bfloat16_product() const {
    require(constant(1) && type(1) == DType::kBFloat16, "the weights are no constant of bfloat16");
    require_types({0, 2}, DType::kFloat32);
    require(result() == DType::kFloat32, "the result is no float32");
  }

  const LevelBuilder& b_;
  const PlanNode& p_;
};

}  // namespace

void check_own_nodes(const Graph& graph) {
  size_t end = 0;
  for (const OwnNode& own : graph.own_nodes) {
    if (own.count == 0 || own.first < end || own.count > graph.nodes().size() ||
        own.first > graph.nodes().size() - own.count)
      fail("a node stands for others that are not there");
    end = size_t{own.first} + own.count;
    for (const std::vector<ValueId>* list : {&own.node.inputs, &own.node.outputs})
      for (ValueId v : *list)
        if (v < kNoValue || v >= static_cast<ValueId>(graph.value_count()))
          fail("a node has a value that is not there");
  }
}

void add_own_node(LevelBuilder& b, OwnNode own) {
  Node& n = own.node;
  const Op* op = find_own_op(n.op);
  if (!op) fail("operator '" + n.op + "' is unknown");
  if (n.inputs.size() < static_cast<size_t>(op->min_inputs) || n.inputs.size() > static_cast<size_t>(op->max_inputs) ||
      n.outputs.size() != 1 || n.outputs[0] == kNoValue)
    fail(n.op + " '" + n.name + "' has another number of inputs or outputs");
  for (int i = 0; i < op->min_inputs; ++i)
    if (n.inputs[static_cast<size_t>(i)] == kNoValue) fail(n.op + " '" + n.name + "' lacks an input");
  PlanNode p = make_node(b, *op, std::move(n.name), std::move(n.inputs), n.outputs[0]);
  p.node.attributes = std::move(n.attributes);
  Checker(b, p).run();
  const auto first = b.graph.nodes().begin() + own.first;
  p.parts.assign(std::make_move_iterator(first), std::make_move_iterator(first + own.count));
  b.nodes.push_back(std::move(p));
}

void check_sources(const LevelBuilder& b) {
  std::vector<bool> is_known(b.values.size(), false);
  for (size_t v = 0; v < b.values.size(); ++v) is_known[v] = b.values[v].constant != nullptr;
  for (ValueId v : b.graph.inputs()) is_known[v] = true;
  for (const PlanNode& p : b.nodes) {
    for (ValueId v : p.node.inputs)
      if (v != kNoValue && !is_known[v]) fail("'" + b.values[v].name + "' is read before it is computed");
    for (ValueId v : p.node.outputs) {
      if (v == kNoValue) continue;
      if (is_known[v]) fail("'" + b.values[v].name + "' is computed twice");
      is_known[v] = true;
    }
  }
  for (ValueId v : b.outputs)
    if (!is_known[v]) fail("the result '" + b.values[v].name + "' is not computed");
}

}  // namespace asc
