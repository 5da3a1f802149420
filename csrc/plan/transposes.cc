// Transpositions move behind element-wise operators and concatenations, where most of them meet their inverse:
// exporters of channels-last models put a pair around every convolution. What is left of one is computed where somebody
// needs it.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "ops/quantized.h"
#include "plan/byte_values.h"

namespace asc {
namespace {

using Permutation = std::vector<int64_t>;

// t transposed so that its dimension i becomes dimension to[i]; missing dimensions in front are 1.
HostTensor transposed(const HostTensor& t, const Permutation& to) {
  const int rank = static_cast<int>(to.size()), missing = rank - t.shape.rank();
  Shape shape;
  for (int i = 0; i < rank; ++i) shape.push_back(1);
  for (int i = missing; i < rank; ++i) shape[static_cast<int>(to[i])] = t.shape[i - missing];
  HostTensor result = HostTensor::allocate(t.dtype, shape);
  const size_t size = size_of(t.dtype);
  const auto* from = static_cast<const char*>(t.data());
  auto* data = static_cast<char*>(result.mutable_data());
  const int64_t count = t.shape.num_elements();
  for (int64_t n = 0; n < count; ++n, from += size) {
    int64_t rest = n, at = 0;
    for (int i = rank - 1; i >= missing; --i) {
      const int axis = static_cast<int>(to[i]);
      at += rest % t.shape[i - missing] * shape.span_of(axis + 1, rank);
      rest /= t.shape[i - missing];
    }
    std::memcpy(data + static_cast<size_t>(at) * size, from, size);
  }
  return result;
}

class Mover {
 public:
  Mover(LevelBuilder& b, bool passes_conversions)
      : b_(b),
        passes_conversions_(passes_conversions),
        keeps_order_(b.values.size(), false),
        ranks_(b.values.size(), kUnknown) {
    for (ValueId v : b.graph.inputs())
      if (b.values[v].type.has_rank) ranks_[v] = b.values[v].type.dims.size();
    for (const PlanNode& p : b.nodes) {
      if (p.node.op == "Transpose" || p.node.op == "Concat" || p.node.op == "Split" || is_shape(p) ||
          acts_on_elements(p))
        continue;
      for (ValueId v : p.node.inputs)
        if (v != kNoValue) keeps_order_[v] = true;
    }
  }

  void run() {
    std::vector<PlanNode> nodes = std::move(b_.nodes);
    b_.nodes.clear();
    b_.nodes.reserve(nodes.size());
    for (PlanNode& p : nodes) {
      if (p.node.op == "Transpose")
        note(p);
      else if (!move_behind(p) && !move_behind_split(p) && !turn_shape(p))
        emit(std::move(p));
    }
    for (ValueId v : b_.outputs) compute(v);
  }

 private:
  // A value that has not been computed: source, transposed.
  struct Pending {
    ValueId source = kNoValue;
    Permutation perm;
    PlanNode node;
  };

  const Pending* pending(ValueId v) const {
    const auto found = pending_.find(v);
    return found == pending_.end() ? nullptr : &found->second;
  }

  void note(PlanNode& p) {
    const ValueId in = p.node.inputs[0], out = p.node.outputs[0];
    Permutation perm = p.node.attributes.get_ints("perm");
    if (!is_permutation(perm) || rank_of(in) != perm.size()) return emit(std::move(p));  // may be refused when it runs
    ValueId source = in;
    if (const Pending* before = pending(in)) {
      for (int64_t& axis : perm) axis = before->perm[static_cast<size_t>(axis)];
      source = before->source;
    }
    if (!std::is_sorted(perm.begin(), perm.end())) return wait(out, source, std::move(perm), p);
    p.op = OpRegistry::instance().find("Identity");
    p.node.op = "Identity";
    p.node.attributes = {};
    p.node.inputs = {source};
    emit(std::move(p));
  }

  static bool is_permutation(Permutation perm) {
    std::sort(perm.begin(), perm.end());
    for (size_t i = 0; i < perm.size(); ++i)
      if (perm[i] != static_cast<int64_t>(i)) return false;
    return !perm.empty();
  }

  // The number of dimensions, where it cannot be another one when the model runs.
  size_t rank_of(ValueId v) const {
    return b_.static_shapes[v] ? static_cast<size_t>(b_.static_shapes[v]->rank()) : ranks_[v];
  }

  void note_rank(const PlanNode& p) {
    static const std::set<std::string> kKeepsRank = {"AveragePool",
                                                     "BatchNormalization",
                                                     "Cast",
                                                     "GlobalAveragePool",
                                                     "GlobalMaxPool",
                                                     "Identity",
                                                     "InstanceNormalization",
                                                     "LRN",
                                                     "MaxPool",
                                                     "Not",
                                                     "Pad",
                                                     "Resize",
                                                     "Softmax"};
    const std::vector<ValueId>& in = p.node.inputs;
    size_t rank = kUnknown;
    if (p.node.op == "Conv" || p.node.op == "ConvTranspose" || p.node.op == conv_last_op().name ||
        p.node.op == conv_transpose_last_op().name || p.node.op == quantized_conv_op().name) {
      rank = rank_of(in[1]);  // that of the weights, or the operator fails
    } else if (p.node.op == "Transpose" && is_permutation(p.node.attributes.get_ints("perm"))) {
      rank = p.node.attributes.get_ints("perm").size();
    } else if (p.node.op == "Concat" || kKeepsRank.count(p.node.op)) {
      rank = rank_of(in[0]);
    } else if (is_conversion(p.node.op) || p.node.op == byte_pool_op().name || p.node.op == pool_last_op().name) {
      rank = rank_of(in[0]);
    } else if (is_dynamic(p)) {
      ranks_[p.node.outputs[0]] = rank_of(in[0]);
      return;
    } else if (p.node.op == "Unsqueeze" && in.size() > 1 && b_.static_shapes[in[1]]) {
      if (rank_of(in[0]) != kUnknown) rank = rank_of(in[0]) + static_cast<size_t>(count_of_axes(in[1]));
    } else if (p.node.op == "Gather") {
      if (rank_of(in[0]) != kUnknown && rank_of(in[1]) != kUnknown) rank = rank_of(in[0]) + rank_of(in[1]) - 1;
    } else if (is_element_wise(p.node.op) || p.node.op == "Less" || p.node.op == "Where") {
      rank = 0;
      for (ValueId v : in)
        if (v != kNoValue) rank = std::max(rank, rank_of(v));
    }
    for (ValueId v : p.node.outputs)
      if (v != kNoValue) ranks_[v] = rank;
  }

  int64_t count_of_axes(ValueId axes) const { return b_.static_shapes[axes]->num_elements(); }

  void wait(ValueId v, ValueId source, Permutation perm, PlanNode node) {
    node.node.op = "Transpose";
    node.op = OpRegistry::instance().find(node.node.op);
    node.node.attributes = {};
    node.node.attributes.set("perm", perm);
    node.node.inputs = {source};
    node.node.outputs = {v};
    node.constant_inputs = 0;
    node.input_types = node.output_types = {b_.values[v].type.dtype};
    ranks_[v] = perm.size();
    pending_[v] = {source, std::move(perm), std::move(node)};
  }

  void compute(ValueId v) {
    const auto found = pending_.find(v);
    if (found == pending_.end()) return;
    PlanNode node = std::move(found->second.node);
    pending_.erase(found);
    b_.nodes.push_back(std::move(node));
  }

  void emit(PlanNode p) {
    for (ValueId v : p.node.inputs) compute(v);
    note_rank(p);
    b_.nodes.push_back(std::move(p));
  }

  // Emits the operator on the sources, so that its result is what waits for transposition; false where it must not.
  bool move_behind(PlanNode& p) {
    const bool is_concat = p.node.op == "Concat";
    if (!is_concat && !acts_on_elements(p)) return false;
    if (p.node.outputs.size() != 1 && !is_dynamic(p)) return false;
    const Permutation* perm = nullptr;
    for (ValueId v : p.node.inputs)
      if (const Pending* w = v == kNoValue ? nullptr : pending(v)) perm = &w->perm;
    if (!perm) return false;
    const Permutation order = *perm;
    for (ValueId v : p.node.inputs)
      if (v != kNoValue && !suits(v, order, is_concat)) return false;
    if (is_concat && !turn_axis(p, order)) return false;
    const ValueId out = p.node.outputs[0], before = add_value_like(out, order);
    PlanNode waiting = p;
    waiting.number = (*b_.next_number)++;
    waiting.node.name = "transpose_of_" + b_.values[out].name;
    for (ValueId& v : p.node.inputs)
      if (v != kNoValue) v = turned(v, order);
    p.node.outputs[0] = before;
    emit(std::move(p));
    wait(out, before, order, std::move(waiting));
    return true;
  }

  // Whether the operator may read what v is made from: constants are turned, and a pending value must not be needed in
  // its own order by anybody else.
  bool suits(ValueId v, const Permutation& order, bool is_concat) const {
    if (const HostTensor* c = b_.values[v].constant.get())
      return !is_concat && c->shape.rank() <= static_cast<int>(order.size()) && c->bytes() <= kMaxConstantBytes;
    const Pending* w = pending(v);
    return w && w->perm == order && !keeps_order_[v];
  }

  static bool is_real(DType t) { return t == DType::kFloat32 || kHalfFloats.contains(t); }

  // Its first result is an element-wise one; the others are numbers, whatever the order of what it reads.
  static bool is_dynamic(const PlanNode& p) {
    return p.node.op == "DynamicQuantizeLinear" && p.node.outputs[0] != kNoValue;
  }

  // Conversions with one scale for all are element-wise, too, and those between floating-point numbers.
  bool acts_on_elements(const PlanNode& p) const {
    if (is_dynamic(p)) return passes_conversions_;
    if (p.node.op == "Cast") return passes_conversions_ && is_real(p.input_types[0]) && is_real(p.output_types[0]);
    if (!is_conversion(p.node.op)) return is_element_wise(p.node.op);
    if (!passes_conversions_) return false;
    return std::all_of(p.node.inputs.begin() + 1, p.node.inputs.end(), [&](ValueId v) {
      return v == kNoValue || (b_.values[v].constant && b_.values[v].constant->shape.num_elements() == 1);
    });
  }

  // Split reads one value and writes several.
  bool move_behind_split(PlanNode& p) {
    const Pending* w = p.node.op == "Split" ? pending(p.node.inputs[0]) : nullptr;
    if (!w) return false;
    const Permutation order = w->perm;
    if (!suits(p.node.inputs[0], order, false) || !turn_axis(p, order)) return false;
    p.node.inputs[0] = w->source;
    std::vector<std::pair<ValueId, ValueId>> parts;
    for (ValueId& out : p.node.outputs) {
      if (out == kNoValue) continue;
      parts.emplace_back(out, add_value_like(out, order));
      out = parts.back().second;
    }
    const PlanNode split = p;
    emit(std::move(p));
    for (const auto& [out, before] : parts) {
      ranks_[before] = order.size();
      PlanNode waiting = split;
      waiting.number = (*b_.next_number)++;
      waiting.node.name = "transpose_of_" + b_.values[out].name;
      wait(out, before, order, std::move(waiting));
    }
    return true;
  }

  static bool is_shape(const PlanNode& p) {
    return p.node.op == "Shape" && !p.node.attributes.has("start") && !p.node.attributes.has("end");
  }

  // The dimensions of what waits are those of its source, in another order.
  bool turn_shape(PlanNode& p) {
    const Pending* w = is_shape(p) ? pending(p.node.inputs[0]) : nullptr;
    if (!w) return false;
    const auto rank = static_cast<int64_t>(w->perm.size());
    const std::string name = b_.values[p.node.outputs[0]].name;
    const ValueId dims = note_new(asc::add_value(b_, name + "_before_transpose", DType::kInt64, kNoValue));
    const ValueId index =
        note_new(add_constant(b_, name + "_order", HostTensor::from(DType::kInt64, Shape{rank}, w->perm)));
    PlanNode gather =
        make_node(b_, *OpRegistry::instance().find("Gather"), p.node.name + "_order", {dims, index}, p.node.outputs[0]);
    p.node.inputs[0] = w->source;
    p.node.outputs[0] = dims;
    emit(std::move(p));
    emit(std::move(gather));
    return true;
  }

  static bool turn_axis(PlanNode& p, const Permutation& order) {
    const auto rank = static_cast<int64_t>(order.size());
    const int64_t axis = p.node.attributes.get_int("axis", 0);
    if (axis < -rank || axis >= rank) return false;  // left for the rule that refuses it
    p.node.attributes.set("axis", order[static_cast<size_t>(axis < 0 ? axis + rank : axis)]);
    return true;
  }

  ValueId turned(ValueId v, const Permutation& order) {
    if (const Pending* w = pending(v)) return w->source;
    const HostTensor& c = *b_.values[v].constant;
    if (c.shape.num_elements() == 1) return v;
    PlanValue value = b_.values[v];
    value.constant = std::make_shared<const HostTensor>(transposed(c, order));
    value.type.dims.clear();
    for (int64_t d : value.constant->shape) value.type.dims.push_back({d, ""});
    return add_value(std::move(value), value.constant->shape);
  }

  ValueId add_value_like(ValueId v, const Permutation& order) {
    PlanValue value = b_.values[v];
    value.name += "_before_transpose";
    std::optional<Shape> shape = b_.static_shapes[v];
    const bool has_dims = value.type.has_rank && value.type.dims.size() == order.size();
    for (size_t i = 0; i < order.size(); ++i) {
      if (has_dims) value.type.dims[static_cast<size_t>(order[i])] = b_.values[v].type.dims[i];
      if (shape) (*shape)[static_cast<int>(order[i])] = (*b_.static_shapes[v])[static_cast<int>(i)];
    }
    return add_value(std::move(value), shape);
  }

  ValueId add_value(PlanValue value, const std::optional<Shape>& shape) {
    value.root = static_cast<ValueId>(b_.values.size());
    b_.values.push_back(std::move(value));
    b_.static_shapes.push_back(shape);
    return note_new(b_.values.back().root);
  }
  ValueId note_new(ValueId v) {
    keeps_order_.resize(b_.values.size(), false);
    ranks_.resize(b_.values.size(), kUnknown);
    return v;
  }

  static constexpr size_t kUnknown = ~size_t{0};
  static constexpr size_t kMaxConstantBytes = size_t{16} << 20;

  LevelBuilder& b_;
  const bool passes_conversions_;
  std::vector<bool> keeps_order_;  // by value: an operator reads it that cannot take its dimensions in another order
  std::vector<size_t> ranks_;      // by value
  std::map<ValueId, Pending> pending_;
};

}  // namespace

void move_transposes(LevelBuilder& b, bool passes_conversions) {
  const auto is_transpose = [](const PlanNode& p) { return p.node.op == "Transpose"; };
  if (b.options->fuse && std::any_of(b.nodes.begin(), b.nodes.end(), is_transpose)) Mover(b, passes_conversions).run();
}

}  // namespace asc
