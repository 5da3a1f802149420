// Convolutions, products and pooling between DequantizeLinear and QuantizeLinear become nodes that work on bytes
// (ops/quantized.h). Those with spatial axes want channels last: they stand between transpositions, most of which meet
// their inverse in transposes.cc.
#include <map>

#include "plan/last_order.h"
#include "plan/quantized_nodes.h"

namespace asc {
namespace {

class ByteComputer {
 public:
  explicit ByteComputer(LevelBuilder& b) : b_(b), order_(b), users_(b.values.size()), producer_(b.values.size(), -1) {
    for (size_t i = 0; i < b.nodes.size(); ++i)
      for (ValueId v : b.nodes[i].node.inputs)
        if (v != kNoValue) users_[v].push_back(static_cast<int>(i));
    for (ValueId v : b.outputs) users_[v].insert(users_[v].end(), 2, -1);
  }

  void run() {
    nodes_ = std::move(b_.nodes);
    b_.nodes.clear();
    taken_.resize(nodes_.size(), false);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (const auto found = scaled_.find(i); found != scaled_.end()) emit_product(found->second);
      if (taken_[i] || try_integers(i)) continue;
      if (!b_.options->fuse) {
        emit(nodes_[i]);
        continue;
      }
      if (!try_product(i) && !try_average(i) && !try_on_bytes(nodes_[i])) emit(nodes_[i]);
    }
  }

 private:
  void emit(PlanNode p) {
    producer_.resize(b_.values.size(), -1);
    for (ValueId v : p.node.outputs)
      if (v != kNoValue) producer_[v] = static_cast<int>(b_.nodes.size());
    order_.emit(std::move(p));
  }

  const Node* producer(ValueId v) const {
    return v != kNoValue && static_cast<size_t>(v) < producer_.size() && producer_[v] >= 0
               ? &b_.nodes[static_cast<size_t>(producer_[v])].node
               : nullptr;
  }

  // The DequantizeLinear that gave v, folded ones included.
  const Node* dequantizer(ValueId v) const {
    if (const auto folded = b_.dequantized.find(v); folded != b_.dequantized.end()) return &folded->second;
    const Node* p = producer(v);
    return p && p->op == "DequantizeLinear" ? p : nullptr;
  }

  // The only reader of v, where it is of that operator; -1: none.
  int only_user(ValueId v, const char* op) const {
    if (users_[v].size() != 1 || users_[v][0] < 0) return -1;
    const int user = users_[v][0];
    return nodes_[static_cast<size_t>(user)].node.op == op && !taken_[static_cast<size_t>(user)] ? user : -1;
  }

  // --- products ------------------------------------------------------------------------------------------------------

  bool try_product(size_t i) {
    const Node& n = nodes_[i].node;
    if (n.op != "Conv" && n.op != "MatMul" && n.op != "Gemm") return false;
    QuantizedNode q(b_, n);
    const Node *x = dequantizer(n.inputs[0]), *w = dequantizer(n.inputs[1]);
    if (!x || !w || !q.set_operands(*x, *w) || !q.set_bias(input_of(n, 2))) return false;
    taken_[i] = true;
    add_end(n.outputs[0], q);
    emit_product(q);
    return true;
  }

  void emit_product(QuantizedNode& q) {
    if (!q.is_conv()) return emit(q.make_matmul());
    const int rank = q.rank();
    PlanNode p = q.make_conv();
    const ValueId x = p.node.inputs[kQuantX];
    order_.emit_between(rank, std::move(p), x);
  }

  // Products of integers, alone or scaled by what is computed while the model runs. A node stands where it is scaled:
  // what computes the scale may lie between. ConvInteger has no other kernel.
  bool try_integers(size_t i) {
    const Node& n = nodes_[i].node;
    if (n.op != "ConvInteger" && n.op != "MatMulInteger") return false;
    QuantizedNode q(b_, n);
    if (!q.set_integers()) return false;
    const int mul = b_.options->fuse ? add_scale(n.outputs[0], q) : -1;
    if (mul < 0) {
      if (q.is_conv()) emit_product(q);
      return q.is_conv();
    }
    ValueId v = nodes_[static_cast<size_t>(mul)].node.outputs[0];
    if (const int add = only_user(v, "Add"); add >= 0 && q.add_bias(nodes_[static_cast<size_t>(add)].node)) {
      taken_[static_cast<size_t>(add)] = true;
      v = nodes_[static_cast<size_t>(add)].node.outputs[0];
    }
    add_end(v, q);
    scaled_.emplace(static_cast<size_t>(mul), std::move(q));
    return true;
  }

  // The Mul that scales v after a Cast; -1: none.
  int add_scale(ValueId v, QuantizedNode& q) {
    const int cast = only_user(v, "Cast");
    if (cast < 0) return -1;
    const Node& c = nodes_[static_cast<size_t>(cast)].node;
    const int mul = only_user(c.outputs[0], "Mul");
    if (mul < 0) return -1;
    const Node& m = nodes_[static_cast<size_t>(mul)].node;
    const ValueId scale = m.inputs[m.inputs[0] == c.outputs[0] ? 1 : 0];
    if (!b_.static_shapes[scale] || !q.add_scale(c, m, scale, *b_.static_shapes[scale])) return -1;
    taken_[static_cast<size_t>(cast)] = taken_[static_cast<size_t>(mul)] = true;
    return mul;
  }

  // What follows a product: bounds, and rounding.
  void add_end(ValueId v, QuantizedNode& q) {
    for (const char* op : {"Relu", "Clip"}) {
      const int user = only_user(v, op);
      if (user < 0 || !q.add_bounds(nodes_[static_cast<size_t>(user)].node)) continue;
      taken_[static_cast<size_t>(user)] = true;
      v = nodes_[static_cast<size_t>(user)].node.outputs[0];
      break;
    }
    const int user = only_user(v, "QuantizeLinear");
    if (user >= 0 && q.add_rounding(nodes_[static_cast<size_t>(user)].node)) taken_[static_cast<size_t>(user)] = true;
  }

  // --- pooling and resizing ------------------------------------------------------------------------------------------

  int rank_of(ValueId v) const {
    if (const int rank = order_.last_rank(v)) return rank;
    if (b_.static_shapes[v]) return b_.static_shapes[v]->rank();
    return b_.values[v].type.has_rank ? static_cast<int>(b_.values[v].type.dims.size()) : 0;
  }

  // Averages, where what they read lies with channels last.
  bool try_average(size_t i) {
    const Node& n = nodes_[i].node;
    const bool is_window = n.op == "AveragePool";
    if (!is_window && !is_global_average(n)) return false;
    const Node* x = dequantizer(n.inputs[0]);
    const int user = only_user(n.outputs[0], "QuantizeLinear");
    if (!x || user < 0 || b_.values[x->inputs[0]].constant) return false;
    const ValueId bytes = x->inputs[0];
    const Node& round = nodes_[static_cast<size_t>(user)].node;
    const std::optional<ByteScale> from = scale_of(b_, *x), to = scale_of(b_, round);
    const int rank = is_window ? static_cast<int>(n.attributes.get_ints("kernel_shape").size()) + 2 : rank_of(bytes);
    if (!from || !to || from->type != to->type || rank < 3 || rank > 5) return false;
    taken_[i] = taken_[static_cast<size_t>(user)] = true;
    order_.emit_between(rank, make_average(b_, n, *x, round, is_window ? "average" : "global"), bytes);
    return true;
  }

  // A mean over all spatial axes that keeps them is one, too.
  bool is_global_average(const Node& n) const {
    if (n.op == "GlobalAveragePool") return true;
    const HostTensor* axes = n.op == "ReduceMean" ? constant_of(b_, input_of(n, 1)) : nullptr;
    if (!axes || n.attributes.get_int("keepdims", 1) != 1) return false;
    const std::vector<int64_t> list = int_values(*axes);
    const auto rank = static_cast<int64_t>(list.size()) + 2;
    if (rank != rank_of(n.inputs[0])) return false;
    std::vector<bool> is_axis(static_cast<size_t>(rank), false);
    for (int64_t a : list)
      if (a >= -rank && a < rank) is_axis[static_cast<size_t>(a < 0 ? a + rank : a)] = true;
    return std::count(is_axis.begin() + 2, is_axis.end(), true) == rank - 2;
  }

  // MaxPool, Resize and Pad of bytes that lie with channels last.
  bool try_on_bytes(PlanNode& p) {
    const ValueId x = p.node.inputs.empty() ? kNoValue : p.node.inputs[0];
    if (x == kNoValue || p.node.outputs.size() != 1 || !is_byte(b_.values[x].type.dtype)) return false;
    if (!order_.last_rank(x)) return false;
    if (p.node.op == "MaxPool") {
      const int rank = static_cast<int>(p.node.attributes.get_ints("kernel_shape").size()) + 2;
      if (rank < 3 || rank > 5 || p.node.attributes.get_int("storage_order", 0) != 0) return false;
      order_.emit_between(rank, make_max_pool(b_, p), x);
      return true;
    }
    const int rank = p.node.op == "Resize" ? turn_resize(b_, p) : p.node.op == "Pad" ? turn_known_pads(b_, p) : 0;
    if (rank < 3) return false;
    order_.emit_between(rank, p, x);
    return true;
  }

  LevelBuilder& b_;
  LastOrder order_;
  std::map<size_t, QuantizedNode> scaled_;  // by the node that scales, of nodes_
  std::vector<PlanNode> nodes_;             // as they were
  std::vector<bool> taken_;                 // of them: part of a node made before
  std::vector<std::vector<int>> users_;     // by value: of them; -1: a result
  std::vector<int> producer_;               // by value: node made, or -1
};

}  // namespace

void compute_on_bytes(LevelBuilder& b) { ByteComputer(b).run(); }

}  // namespace asc
