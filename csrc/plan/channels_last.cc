// Convolutional networks with channels last: convolutions, and what lies between them, become nodes on
// channels-last tensors (ops/channels_last.h), for devices whose convolutions take them as they lie.
#include <algorithm>
#include <cmath>
#include <set>

#include "ops/channels_last.h"
#include "plan/byte_values.h"
#include "plan/last_order.h"
#include "plan/quantized_nodes.h"

namespace asc {
namespace {

// Planes that a transposed convolution makes are few: most of a vector of channels would be padding, while planes are
// lines of their own.
constexpr int64_t kFewPlanes = 4;
constexpr int kSignal = 3, kVolume = 5;  // ranks of what is convolved; 4: images

class Arranger {
 public:
  explicit Arranger(LevelBuilder& b) : b_(b), order_(b) {}

  // One convolution alone gains nothing.
  bool run() {
    for (int rank : {kSignal, kVolume}) is_arranged_[rank] = pays(rank);
    if (std::count_if(b_.nodes.begin(), b_.nodes.end(), [&](const PlanNode& p) { return is_convolution(p); }) < 2)
      return false;
    std::vector<PlanNode> nodes = std::move(b_.nodes);
    b_.nodes.clear();
    b_.nodes.reserve(nodes.size());
    for (PlanNode& p : nodes)
      if (!arrange(p)) order_.emit(std::move(p));
    return true;
  }

 private:
  static bool is_float(const PlanNode& p) {
    return !p.node.inputs.empty() && p.node.outputs.size() == 1 && p.output_types[0] == DType::kFloat32 &&
           p.input_types[0] == DType::kFloat32;
  }

  // Whether convolutions of signals or volumes turn values less often with channels last: with channels first all but
  // those of one position turn what they read and what they make. Images always gain.
  bool pays(int rank) const {
    enum class Order : uint8_t { kFirst, kLast, kBoth };
    std::vector<Order> order(b_.values.size(), Order::kFirst);
    int64_t turns = 0, turns_with_first = 0;
    const auto turn = [&](ValueId v, Order from) {
      if (v == kNoValue || order[v] != from) return;
      order[v] = Order::kBoth;
      ++turns;
    };
    for (const PlanNode& p : b_.nodes) {
      const Node& n = p.node;
      const auto is_last = [&](ValueId v) { return v != kNoValue && order[v] != Order::kFirst; };
      const bool is_turned = std::any_of(n.inputs.begin(), n.inputs.end(), is_last) &&
                             std::all_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) {
                               return v == kNoValue || is_last(v) || b_.values[v].constant;
                             });
      bool makes_last = false;
      if (is_convolution(p) && constant_of(b_, n.inputs[1])->shape.rank() == rank) {
        const Shape& w = constant_of(b_, n.inputs[1])->shape;
        if (w.span_of(2, rank) != 1) turns_with_first += 2;
        turn(n.inputs[0], Order::kFirst);
        makes_last = true;
      } else if (n.op == "Transpose") {
        makes_last = turns_to_first(n) && static_cast<int>(n.attributes.get_ints("perm").size()) == rank &&
                     !is_last(n.inputs[0]);  // of signals, the same turn leads back
      } else if ((is_turned && passes_order_on(n.op)) ||
                 (!n.inputs.empty() && is_last(n.inputs[0]) && keeps_channels(n, rank))) {
        makes_last = true;
      } else if (n.op != "Shape") {
        for (ValueId v : n.inputs) turn(v, Order::kLast);
      }
      for (ValueId v : n.outputs)
        if (v != kNoValue && makes_last) order[v] = Order::kLast;
    }
    for (ValueId v : b_.outputs) turn(v, Order::kLast);
    return turns < turns_with_first;
  }

  bool keeps_channels(const Node& n, int rank) const {
    return n.op == "AveragePool" || n.op == "MaxPool" || n.op == "GlobalAveragePool" || n.op == "BatchNormalization" ||
           n.op == "Pad" || n.op == "Resize" || is_global_mean(n, rank);
  }

  // With constant weights: devices lay them out once.
  bool is_convolution(const PlanNode& p) const {
    const bool is_transposed = p.node.op == "ConvTranspose";
    if ((p.node.op != "Conv" && !is_transposed) || !is_float(p) || constant_of(b_, p.node.inputs[0])) return false;
    const HostTensor *w = constant_of(b_, p.node.inputs[1]), *bias = constant_of(b_, input_of(p.node, 2));
    if (!w || w->shape.rank() < kSignal || w->shape.rank() > kVolume || w->shape.num_elements() == 0) return false;
    if (!is_arranged_[w->shape.rank()]) return false;
    const int64_t group = p.node.attributes.get_int("group", 1);
    if (is_transposed && group == 1 && w->shape[1] <= kFewPlanes) return false;
    if (input_of(p.node, 2) == kNoValue) return true;
    if (is_transposed && (group < 1 || group > w->shape[0])) return false;
    return bias && bias->shape == Shape{is_transposed ? w->shape[1] * group : w->shape[0]};
  }

  bool arrange(PlanNode& p) {
    if (is_convolution(p)) {
      put(constant_of(b_, p.node.inputs[1])->shape.rank(), p,
          p.node.op == "Conv" ? conv_last_op() : conv_transpose_last_op(), {});
      return true;
    }
    const int rank = is_float(p) ? order_.last_rank(p.node.inputs[0]) : 0;
    if (rank < kSignal || rank > kVolume || !is_arranged_[rank]) return false;
    const std::string& op = p.node.op;
    if (op == "GlobalAveragePool" || is_global_mean(p.node, rank)) {
      put(rank, p, pool_last_op(), "global");
      return true;
    }
    if (op == "AveragePool" || op == "MaxPool") {
      if (static_cast<int>(p.node.attributes.get_ints("kernel_shape").size()) != rank - 2) return false;
      put(rank, p, pool_last_op(), op == "MaxPool" ? "max" : "average");
      return true;
    }
    if (op == "BatchNormalization") return scale_and_shift(p, rank);
    if (op == "Pad" ? turn_pads(p, rank) : op == "Resize" && turn_resize(b_, p) == rank) {
      order_.emit_between(rank, p, p.node.inputs[0]);
      return true;
    }
    return false;
  }

  void put(int rank, const PlanNode& p, const Op& op, std::string mode) {
    PlanNode last = make_node(b_, op, p.node.name, p.node.inputs, p.node.outputs[0]);
    if (op.max_inputs == 1) last.node.inputs.resize(1), last.input_types.resize(1), last.constant_inputs = 0;
    last.number = p.number;
    if (mode != "global") last.node.attributes = p.node.attributes;
    if (!mode.empty()) last.node.attributes.set("mode", std::move(mode));
    last.parts = {p.node};
    order_.emit_between(rank, std::move(last), p.node.inputs[0]);
  }

  // A mean over all axes behind the channels that keeps them.
  bool is_global_mean(const Node& n, int rank) const {
    const HostTensor* axes = n.op == "ReduceMean" ? constant_of(b_, input_of(n, 1)) : nullptr;
    if (!axes || axes->dtype != DType::kInt64 || n.attributes.get_int("keepdims", 1) != 1) return false;
    std::set<int64_t> list;
    for (int64_t i = 0; i < axes->shape.num_elements(); ++i)
      list.insert(axes->as<int64_t>()[i] + (axes->as<int64_t>()[i] < 0 ? rank : 0));
    std::set<int64_t> wanted;
    for (int i = 2; i < rank; ++i) wanted.insert(i);
    return list == wanted;
  }

  // x * a + b with constants for each channel.
  bool scale_and_shift(const PlanNode& p, int rank) {
    const Node& n = p.node;
    const HostTensor* parts[4];
    for (size_t i = 0; i < 4; ++i) {
      parts[i] = constant_of(b_, input_of(n, i + 1));
      if (!parts[i] || parts[i]->dtype != DType::kFloat32 || parts[i]->shape.rank() != 1) return false;
      if (parts[i]->shape != parts[0]->shape) return false;
    }
    if (n.attributes.get_int("training_mode", 0) != 0) return false;
    const int64_t channels = parts[0]->shape[0];
    const double epsilon = n.attributes.get_float("epsilon", 1e-5);
    Shape shape{channels};
    for (int i = 2; i < rank; ++i) shape.push_back(1);
    HostTensor a = HostTensor::allocate(DType::kFloat32, shape), b = HostTensor::allocate(DType::kFloat32, shape);
    for (int64_t c = 0; c < channels; ++c) {
      const auto at = [&](size_t i) { return static_cast<double>(parts[i]->as<float>()[c]); };
      const double factor = at(0) / std::sqrt(at(3) + epsilon);
      static_cast<float*>(a.mutable_data())[c] = static_cast<float>(factor);
      static_cast<float*>(b.mutable_data())[c] = static_cast<float>(at(1) - at(2) * factor);
    }
    const ValueId scaled = add_value(b_, b_.values[n.outputs[0]].name + "_scaled", DType::kFloat32, n.outputs[0]);
    const ValueId factors = add_constant(b_, n.name + "_factors", std::move(a));
    const ValueId shifts = add_constant(b_, n.name + "_shifts", std::move(b));
    order_.emit(make_node(b_, *OpRegistry::instance().find("Mul"), n.name + "_scale", {n.inputs[0], factors}, scaled));
    order_.emit(make_node(b_, *OpRegistry::instance().find("Add"), n.name, {scaled, shifts}, n.outputs[0]));
    return true;
  }

  // Pads of all axes, in the order of the axes.
  bool turn_pads(PlanNode& p, int rank) {
    if (input_of(p.node, 3) != kNoValue || b_.values[p.node.inputs[1]].type.dtype != DType::kInt64) return false;
    const int64_t count = 2 * rank;
    std::vector<int64_t> order;
    for (int64_t side : {0, rank}) {
      order.push_back(side);
      for (int i = 2; i < rank; ++i) order.push_back(side + i);
      order.push_back(side + 1);
    }
    const ValueId pads = p.node.inputs[1], turned = add_value(b_, b_.values[pads].name + "_last", DType::kInt64, pads);
    const ValueId index =
        add_constant(b_, p.node.name + "_order", HostTensor::from(DType::kInt64, Shape{count}, order));
    PlanNode gather =
        make_node(b_, *OpRegistry::instance().find("Gather"), b_.values[turned].name, {pads, index}, turned);
    p.node.inputs[1] = turned;
    if (const HostTensor* known = constant_of(b_, pads); known && known->shape == Shape{count}) {
      std::vector<int64_t> values;
      for (int64_t from : order) values.push_back(known->as<int64_t>()[from]);
      b_.values[turned].constant =
          std::make_shared<const HostTensor>(HostTensor::from(DType::kInt64, Shape{count}, values));
      return true;
    }
    order_.emit(std::move(gather));
    p.constant_inputs &= ~uint64_t{2};
    return true;
  }

  LevelBuilder& b_;
  LastOrder order_;
  bool is_arranged_[kVolume + 1] = {false, false, false, true, true, true};  // by rank
};

}  // namespace

bool arrange_channels_last(LevelBuilder& b) { return b.options->fuse && b.options->channels_last && Arranger(b).run(); }

}  // namespace asc
