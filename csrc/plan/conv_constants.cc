// Constants that follow a convolution with constant weights become part of its weights and bias: BatchNormalization
// with constant statistics, and arithmetic with one number or one per output channel.
#include <algorithm>
#include <cmath>

#include "plan/byte_values.h"
#include "plan/uses.h"

namespace asc {
namespace {

class Joiner {
 public:
  explicit Joiner(LevelBuilder& b) : b_(b), uses_(b) {}

  void run() {
    for (PlanNode& p : b_.nodes)
      if (p.node.op == "Conv" || p.node.op == "ConvTranspose") join(p);
  }

 private:
  // y * factor + shift for each output channel, of what the convolution itself gives.
  struct Scale {
    std::vector<double> factor, shift;
  };

  const HostTensor* floats(ValueId v) const {
    const HostTensor* c = constant_of(b_, v);
    return c && c->dtype == DType::kFloat32 ? c : nullptr;
  }

  void join(const PlanNode& conv) {
    const HostTensor *w = floats(conv.node.inputs[1]), *bias = floats(input_of(conv.node, 2));
    if (!w || w->shape.rank() < 3 || w->shape.num_elements() == 0) return;
    if (b_.dequantized.count(conv.node.inputs[1])) return;  // may become a product of bytes
    const int64_t group = conv.node.op == "Conv" ? 0 : std::max<int64_t>(1, conv.node.attributes.get_int("group", 1));
    if (group > 0 && w->shape[0] % group != 0) return;
    const int64_t count = group == 0 ? w->shape[0] : group * w->shape[1];
    if (input_of(conv.node, 2) != kNoValue && (!bias || bias->shape != Shape{count})) return;
    const auto channels = static_cast<size_t>(count);
    Scale scale{std::vector<double>(channels, 1.0), std::vector<double>(channels, 0.0)};
    std::string name = conv.node.name;
    int last = -1;
    ValueId v = conv.node.outputs[0];
    while (uses_.is_inner(v) && uses_.users(v).size() == 1) {
      const int user = uses_.users(v)[0];
      const Node& n = b_.nodes[static_cast<size_t>(user)].node;
      Scale next = scale;
      if (!apply(n, v, w->shape.rank(), &next) || !is_finite(next)) break;
      scale = std::move(next);
      last = user;
      name += " + " + n.name;
      v = n.outputs[0];
    }
    if (last < 0) return;
    // The convolution stands where the last of them stood, and writes its result.
    PlanNode& to = b_.nodes[static_cast<size_t>(last)];
    const Node& n = conv.node;
    const ValueId weights = add_constant(b_, n.name + "_weights", scaled(*w, scale.factor, group));
    const ValueId shift = add_constant(b_, n.name + "_bias", shifted(bias, scale));
    PlanNode joined = make_node(b_, *conv.op, std::move(name), {n.inputs[0], weights, shift}, v);
    joined.node.attributes = n.attributes;
    to = std::move(joined);
  }

  bool apply(const Node& n, ValueId v, int rank, Scale* s) const {
    if (n.outputs.size() != 1) return false;
    if (n.op == "BatchNormalization") return n.inputs[0] == v && apply_norm(n, s);
    if (n.inputs.size() != 2 || (n.op != "Add" && n.op != "Sub" && n.op != "Mul" && n.op != "Div")) return false;
    const bool is_first = n.inputs[0] == v;
    const HostTensor* c = floats(n.inputs[is_first ? 1 : 0]);
    if (!c || !fits(*c, rank, s->factor.size()) || (n.op == "Div" && !is_first)) return false;
    for (size_t i = 0; i < s->factor.size(); ++i) {
      const double number = c->as<float>()[c->shape.num_elements() == 1 ? 0 : i];
      double &factor = s->factor[i], &shift = s->shift[i];
      if (n.op == "Add") {
        shift += number;
      } else if (n.op == "Sub") {
        shift = is_first ? shift - number : number - shift;
        if (!is_first) factor = -factor;
      } else {
        const double by = n.op == "Mul" ? number : 1.0 / number;
        factor *= by;
        shift *= by;
      }
    }
    return true;
  }

  // One number, or one per channel of a result of `rank` dimensions.
  static bool fits(const HostTensor& c, int rank, size_t channels) {
    if (c.shape.rank() > rank || c.shape.num_elements() == 0) return false;
    if (c.shape.num_elements() == 1) return true;
    const int axis = c.shape.rank() - (rank - 1);
    return axis >= 0 && c.shape[axis] == static_cast<int64_t>(channels) && c.shape.num_elements() == c.shape[axis];
  }

  bool apply_norm(const Node& n, Scale* s) const {
    const HostTensor* parts[4];
    for (size_t i = 0; i < 4; ++i) {
      parts[i] = floats(input_of(n, i + 1));
      if (!parts[i] || parts[i]->shape != Shape{static_cast<int64_t>(s->factor.size())}) return false;
    }
    if (n.attributes.get_int("training_mode", 0) != 0) return false;
    const double epsilon = n.attributes.get_float("epsilon", 1e-5);
    for (size_t i = 0; i < s->factor.size(); ++i) {
      const auto at = [&](int part) { return static_cast<double>(parts[part]->as<float>()[i]); };
      const double by = at(0) / std::sqrt(at(3) + epsilon);
      s->factor[i] *= by;
      s->shift[i] = (s->shift[i] - at(2)) * by + at(1);
    }
    return true;
  }

  static bool is_finite(const Scale& s) {
    for (size_t i = 0; i < s.factor.size(); ++i)
      if (!std::isfinite(s.factor[i]) || !std::isfinite(s.shift[i])) return false;
    return true;
  }

  // Output channels lie along the first axis; along the second one, for each group of inputs, where `group` is not 0.
  static HostTensor scaled(const HostTensor& w, const std::vector<double>& factors, int64_t group) {
    HostTensor result = HostTensor::allocate(DType::kFloat32, w.shape);
    auto* to = static_cast<float*>(result.mutable_data());
    const float* from = w.as<float>();
    const int64_t rows = group == 0 ? 1 : w.shape[0], columns = w.shape[group == 0 ? 0 : 1];
    const int64_t size = w.shape.span_of(group == 0 ? 1 : 2, w.shape.rank());
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column) {
        const double factor = factors[static_cast<size_t>((group == 0 ? 0 : row / (rows / group) * columns) + column)];
        for (int64_t i = 0; i < size; ++i) *to++ = static_cast<float>(*from++ * factor);
      }
    return result;
  }

  static HostTensor shifted(const HostTensor* bias, const Scale& s) {
    HostTensor result = HostTensor::allocate(DType::kFloat32, Shape{static_cast<int64_t>(s.factor.size())});
    for (size_t i = 0; i < s.factor.size(); ++i)
      static_cast<float*>(result.mutable_data())[i] =
          static_cast<float>((bias ? bias->as<float>()[i] * s.factor[i] : 0.0) + s.shift[i]);
    return result;
  }

  LevelBuilder& b_;
  const Uses uses_;
};

}  // namespace

void join_conv_constants(LevelBuilder& b) {
  if (b.options->fuse) Joiner(b).run();
}

}  // namespace asc
