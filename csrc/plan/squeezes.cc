// One-dimensional convolutions that exporters write as two-dimensional ones squeeze their results and expand them again
// for the next. The Squeeze moves behind element-wise operators until it meets that Unsqueeze: what is between then
// joins the convolution.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "plan/byte_values.h"

namespace asc {
namespace {

using Axes = std::vector<int64_t>;

class Squeezer {
 public:
  explicit Squeezer(LevelBuilder& b)
      : b_(b), extents_(b.values.size()), is_result_(b.values.size(), false), is_convolved_(b.values.size(), false) {
    for (ValueId v : b.outputs) is_result_[v] = true;
    for (ValueId v : b.graph.inputs())
      if (b.values[v].type.has_rank) {
        extents_[v].is_known = true;
        for (const Dim& d : b.values[v].type.dims) extents_[v].is_one.push_back(d.value == 1);
      }
  }

  void run() {
    std::vector<PlanNode> nodes = std::move(b_.nodes);
    b_.nodes.clear();
    b_.nodes.reserve(nodes.size());
    for (PlanNode& p : nodes)
      if (!note_squeeze(p) && !move_behind(p) && !meet(p)) emit(std::move(p));
    for (ValueId v : b_.outputs) compute(v);
  }

 private:
  // The rank of a value, and which of its dimensions are 1 whenever the model runs.
  struct Extents {
    bool is_known = false;
    std::vector<bool> is_one;
    int64_t rank() const { return static_cast<int64_t>(is_one.size()); }
  };

  // A value that is `source` without `axes`, computed where somebody needs it.
  struct Pending {
    ValueId source = kNoValue;
    Axes axes;
    PlanNode node;
    bool is_computed = false;
  };

  static Extents known(const Shape& s) {
    Extents e;
    e.is_known = true;
    for (int64_t d : s) e.is_one.push_back(d == 1);
    return e;
  }
  Extents extents_of(ValueId v) const {
    if (v == kNoValue) return {};
    return b_.static_shapes[v] ? known(*b_.static_shapes[v]) : extents_[v];
  }

  const Pending* pending(ValueId v) const {
    const auto found = pending_.find(v);
    return found == pending_.end() ? nullptr : &found->second;
  }

  // Constant axes of `rank` dimensions, ascending; empty where they are none or refused when the model runs.
  Axes axes_of(const Node& n, int64_t rank) const {
    const HostTensor* c = constant_of(b_, input_of(n, 1));
    if (!c || c->dtype != DType::kInt64) return {};
    std::set<int64_t> axes;
    for (int64_t i = 0; i < c->shape.num_elements(); ++i) {
      const int64_t axis = c->as<int64_t>()[i], from_front = axis < 0 ? axis + rank : axis;
      if (from_front < 0 || from_front >= rank || !axes.insert(from_front).second) return {};
    }
    return {axes.begin(), axes.end()};
  }

  // Only where it cannot fail.
  bool note_squeeze(PlanNode& p) {
    if (p.node.op != "Squeeze" || !is_convolved_[p.node.inputs[0]]) return false;
    const Extents e = extents_of(p.node.inputs[0]);
    const Axes axes = e.is_known ? axes_of(p.node, e.rank()) : Axes{};
    if (axes.empty()) return false;
    for (int64_t axis : axes)
      if (!e.is_one[static_cast<size_t>(axis)]) return false;
    wait(p.node.outputs[0], {p.node.inputs[0], axes, p});
    return true;
  }

  void wait(ValueId v, Pending w) {
    extents_[v].is_known = true;
    extents_[v].is_one.clear();
    const Extents from = extents_of(w.source);
    for (int64_t axis = 0; axis < from.rank(); ++axis)
      if (!std::binary_search(w.axes.begin(), w.axes.end(), axis))
        extents_[v].is_one.push_back(from.is_one[static_cast<size_t>(axis)]);
    pending_[v] = std::move(w);
  }

  void compute(ValueId v) {
    const auto found = pending_.find(v);
    if (found == pending_.end() || found->second.is_computed) return;
    found->second.is_computed = true;
    b_.nodes.push_back(found->second.node);
  }

  void emit(PlanNode p) {
    for (ValueId v : p.node.inputs) compute(v);
    note_extents(p);
    b_.nodes.push_back(std::move(p));
  }

  // Computes the operator on what was squeezed: results of a model are left, they would become copies.
  bool move_behind(PlanNode& p) {
    if (!is_element_wise(p.node.op) || p.node.outputs.size() != 1 || is_result_[p.node.outputs[0]]) return false;
    const Pending* first = nullptr;
    for (ValueId v : p.node.inputs)
      if (!first) first = v == kNoValue ? nullptr : pending(v);
    if (!first) return false;
    const Pending squeeze = *first;
    const int64_t rank = extents_of(squeeze.source).rank();
    for (ValueId v : p.node.inputs)
      if (v != kNoValue && !suits(v, squeeze, rank)) return false;
    for (ValueId& v : p.node.inputs)
      if (v != kNoValue) v = pending(v) ? pending(v)->source : expanded(v, squeeze.axes, rank);
    const ValueId out = p.node.outputs[0];
    const ValueId before =
        note_new(add_value(b_, b_.values[out].name + "_before_squeeze", p.output_types[0], kNoValue));
    p.node.outputs[0] = before;
    emit(std::move(p));
    is_convolved_[before] = true;
    Pending next = squeeze;
    next.source = before;
    next.is_computed = false;
    next.node.number = (*b_.next_number)++;
    next.node.node.name = "squeeze_of_" + b_.values[out].name;
    next.node.node.inputs[0] = before;
    next.node.node.outputs[0] = out;
    next.node.input_types[0] = next.node.output_types[0] = b_.values[out].type.dtype;
    wait(out, std::move(next));
    return true;
  }

  bool suits(ValueId v, const Pending& squeeze, int64_t rank) const {
    const Pending* w = pending(v);
    if (w) return w->axes == squeeze.axes && extents_of(w->source).rank() == rank;
    const HostTensor* c = constant_of(b_, v);
    return c && c->bytes() <= kMaxConstantBytes &&
           c->shape.rank() <= static_cast<int>(rank - static_cast<int64_t>(squeeze.axes.size()));
  }

  // A constant with dimensions of 1 where `axes` of `rank` lie.
  ValueId expanded(ValueId v, const Axes& axes, int64_t rank) {
    const HostTensor& c = *b_.values[v].constant;
    if (c.shape.rank() == 0) return v;
    std::vector<int64_t> dims;  // last first
    int from = c.shape.rank();
    for (int64_t axis = rank - 1; axis >= 0 && from > 0; --axis)
      dims.push_back(std::binary_search(axes.begin(), axes.end(), axis) ? 1 : c.shape[--from]);
    Shape shape;
    for (auto d = dims.rbegin(); d != dims.rend(); ++d) shape.push_back(*d);
    return note_new(add_constant(b_, b_.values[v].name + "_expanded", HostTensor{c.dtype, shape, c.buffer}));
  }

  // An Unsqueeze that undoes it.
  bool meet(PlanNode& p) {
    const Pending* w = p.node.op == "Unsqueeze" ? pending(p.node.inputs[0]) : nullptr;
    if (!w || axes_of(p.node, extents_of(w->source).rank()) != w->axes) return false;
    const uint32_t number = p.number;
    p = make_node(b_, *OpRegistry::instance().find("Identity"), p.node.name, {w->source}, p.node.outputs[0]);
    p.number = number;
    emit(std::move(p));
    return true;
  }

  void note_extents(const PlanNode& p) {
    if (p.node.outputs.size() != 1) return;
    const Node& n = p.node;
    const ValueId out = n.outputs[0];
    Extents& to = extents_[out];
    if (n.op == "Identity" || n.op == "Cast") {
      to = extents_of(n.inputs[0]);
      is_convolved_[out] = is_convolved_[n.inputs[0]];
    } else if (n.op == "Unsqueeze") {
      expand(n, &to);
    } else if (n.op == "Transpose") {
      turn(n, &to);
    } else if (n.op == "Gather") {
      const Extents data = extents_of(n.inputs[0]), indices = extents_of(n.inputs[1]);
      to.is_known = data.is_known && indices.is_known && data.rank() > 0;
      if (to.is_known) to.is_one.assign(static_cast<size_t>(data.rank() + indices.rank() - 1), false);
    } else if (n.op == "Conv") {
      convolve(n, &to);
      is_convolved_[out] = true;
    } else if (is_element_wise(n.op) || n.op == "Less" || n.op == "Not") {
      broadcast(n, &to);
    }
  }

  void expand(const Node& n, Extents* to) const {
    const Extents from = extents_of(n.inputs[0]);
    const HostTensor* c = constant_of(b_, input_of(n, 1));
    if (!from.is_known || !c) return;
    const int64_t rank = from.rank() + c->shape.num_elements();
    const Axes axes = axes_of(n, rank);
    if (axes.empty()) return;
    to->is_known = true;
    size_t next = 0;
    for (int64_t axis = 0; axis < rank; ++axis)
      to->is_one.push_back(std::binary_search(axes.begin(), axes.end(), axis) || from.is_one[next++]);
  }

  void turn(const Node& n, Extents* to) const {
    const Extents from = extents_of(n.inputs[0]);
    const Axes& perm = n.attributes.get_ints("perm");
    Axes sorted = perm;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < sorted.size(); ++i)
      if (sorted[i] != static_cast<int64_t>(i)) return;
    if (!from.is_known || perm.size() != from.is_one.size()) return;
    to->is_known = true;
    for (int64_t axis : perm) to->is_one.push_back(from.is_one[static_cast<size_t>(axis)]);
  }

  // A window of 1 with a stride of 1 and no padding keeps a dimension; it has the rank of its weights, or fails.
  void convolve(const Node& n, Extents* to) const {
    const Extents x = extents_of(n.inputs[0]), w = extents_of(n.inputs[1]);
    if (!w.is_known || w.rank() < 3) return;
    to->is_known = true;
    to->is_one.assign(w.is_one.size(), false);
    const Axes &strides = n.attributes.get_ints("strides"), &pads = n.attributes.get_ints("pads");
    const bool pads_itself = n.attributes.get_string("auto_pad", "NOTSET") != "NOTSET";
    const size_t spatial = w.is_one.size() - 2;
    for (size_t i = 0; i < spatial; ++i) {
      const bool is_step = strides.empty() || (strides.size() == spatial && strides[i] == 1);
      const bool is_bare =
          pads_itself || pads.empty() || (pads.size() == 2 * spatial && !pads[i] && !pads[i + spatial]);
      to->is_one[2 + i] = x.rank() == w.rank() && x.is_one[2 + i] && w.is_one[2 + i] && is_step && is_bare;
    }
  }

  void broadcast(const Node& n, Extents* to) const {
    size_t rank = 0;
    for (ValueId v : n.inputs) {
      if (v == kNoValue) continue;
      if (!extents_of(v).is_known) return;
      rank = std::max(rank, extents_of(v).is_one.size());
    }
    to->is_known = true;
    to->is_one.assign(rank, true);
    for (ValueId v : n.inputs) {
      if (v == kNoValue) continue;
      const Extents e = extents_of(v);
      for (size_t i = 0; i < e.is_one.size(); ++i)
        if (!e.is_one[i]) to->is_one[rank - e.is_one.size() + i] = false;
    }
  }

  ValueId note_new(ValueId v) {
    extents_.resize(b_.values.size());
    is_result_.resize(b_.values.size(), false);
    is_convolved_.resize(b_.values.size(), false);
    return v;
  }

  static constexpr size_t kMaxConstantBytes = size_t{16} << 20;

  LevelBuilder& b_;
  std::vector<Extents> extents_;    // by value; of those with a static shape, that counts
  std::vector<bool> is_result_;     // by value
  std::vector<bool> is_convolved_;  // by value: made by a convolution and element-wise operators
  std::map<ValueId, Pending> pending_;
};

}  // namespace

void move_squeezes(LevelBuilder& b) {
  const auto has = [&](const char* op) {
    return std::any_of(b.nodes.begin(), b.nodes.end(), [op](const PlanNode& p) { return p.node.op == op; });
  };
  if (b.options->fuse && has("Squeeze") && has("Conv")) Squeezer(b).run();
}

}  // namespace asc
