#include "backends/cpu/fused_conv.h"

#include <limits>

#include "backends/cpu/conv_last.h"
#include "ops/channels_last.h"

namespace asc::cpu {
namespace {

class Matcher {
 public:
  Matcher(const TilingContext& ctx, const FusedBody& body, const Shape* shapes)
      : ctx_(ctx), body_(body), shapes_(shapes), inputs_(static_cast<ValueId>(body.input_count())) {}

  FoundConv match() {
    for (size_t i = 0; i < body_.step_count(); ++i)
      if (body_.step(i).op == conv_last_op().name || body_.step(i).op == conv_transpose_last_op().name) return match(i);
    return {};
  }

 private:
  FoundConv match(size_t conv) {
    FoundConv found;
    found.operands = body_.step(conv).inputs;
    found.operands.resize(3, kNoValue);
    take(conv, &found);
    ValueId v = result_of(conv);
    while (extend(&v, &found)) continue;
    if (ends_.empty()) return {};
    const StepOperands in(ctx_, body_, conv, shapes_);
    uint64_t constants = 0;
    for (int i = 0; i < in.count; ++i) {
      const ValueId operand = body_.step(conv).inputs[static_cast<size_t>(i)];
      if (operand >= 0 && operand < inputs_ && ctx_.is_constant(static_cast<int>(operand)))
        constants |= uint64_t{1} << i;
    }
    const DType type = body_.step_type(conv);
    const TilingContext inner(body_.step(conv), in.types, in.shapes, in.hosts, in.count, &type,
                              &shapes_[result_of(conv)], 1, constants, ctx_.options());
    found.tiling = try_conv_last(inner, ends_);
    ctx_.note_threads(inner.threads_used());
    return found;
  }

  // Takes what alone reads v, where one launch can do it; v is then what that makes.
  bool extend(ValueId* v, FoundConv* found) {
    size_t users[2], count = 0;
    for (size_t i = 0; i < body_.step_count(); ++i)
      for (ValueId in : body_.step(i).inputs)
        if (in == *v) {
          if (count == 2) return false;
          users[count++] = i;
        }
    if (count == 0 || shapes_[result_of(users[count - 1])] != shapes_[*v]) return false;
    const bool is_taken = count == 1 ? take_one(*v, users[0], found) : take_product(*v, users[0], users[1], found);
    if (is_taken) *v = result_of(users[count - 1]);
    return is_taken;
  }

  bool take_one(ValueId v, size_t step, FoundConv* found) {
    const Node& n = body_.step(step);
    const auto number = [&](const char* name, double otherwise) {
      return static_cast<float>(n.attributes.get_float(name, otherwise));
    };
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (n.op == "Relu") {
      ends_.push_back({ConvEnd::Kind::kRelu, 0, 0});
    } else if (n.op == "LeakyRelu") {
      ends_.push_back({ConvEnd::Kind::kRelu, number("alpha", 0.01), 0});
    } else if (n.op == "Clip") {
      for (size_t i : {1, 2})  // plan/fuse.cc notes constant bounds
        if (i < n.inputs.size() && n.inputs[i] != kNoValue && !n.attributes.has(i == 1 ? "low" : "high")) return false;
      const float low = number("low", -kInfinity), high = number("high", kInfinity);
      if (n.inputs[0] != v || !(low <= high) || low == kInfinity || high == -kInfinity) return false;
      ends_.push_back({ConvEnd::Kind::kClip, low, high});
    } else if (n.op == "Sigmoid") {
      ends_.push_back({ConvEnd::Kind::kSigmoid, 0, 0});
    } else if (n.op == "HardSwish") {
      ends_.push_back({ConvEnd::Kind::kHardSwish, 0, 0});
    } else if ((n.op == "Add" || n.op == "Mul") && n.attributes.has("number")) {
      const bool adds = n.op == "Add";
      ends_.push_back({ConvEnd::Kind::kLinear, adds ? 1 : number("number", 1), adds ? number("number", 0) : 0});
    } else if (n.op == "Add") {
      const ValueId other = n.inputs[n.inputs[0] == v ? 1 : 0];
      if (shapes_[other] != shapes_[v] || is_made_by_later(other, found)) return false;
      ends_.push_back({ConvEnd::Kind::kAdd, 0, 0});
      found->operands.push_back(other);
    } else {
      return false;
    }
    take(step, found);
    return true;
  }

  // v * Sigmoid(v).
  bool take_product(ValueId v, size_t gate, size_t product, FoundConv* found) {
    const Node& n = body_.step(product);
    if (n.op != "Mul" || gate == product || body_.step(gate).op != "Sigmoid") return false;
    const ValueId g = result_of(gate);
    if (!(n.inputs[0] == v && n.inputs[1] == g) && !(n.inputs[0] == g && n.inputs[1] == v)) return false;
    for (size_t i = 0; i < body_.step_count(); ++i)
      for (ValueId in : body_.step(i).inputs)
        if (in == g && i != product) return false;
    if (is_result(gate)) return false;
    ends_.push_back({ConvEnd::Kind::kSwish, 0, 0});
    take(gate, found);
    take(product, found);
    return true;
  }

  // The unit runs where its last step stands: what it reads must be there by then, and it is, since steps are in order.
  // Only the result of the unit itself cannot be its operand.
  bool is_made_by_later(ValueId v, const FoundConv* found) const {
    return v >= inputs_ && ((found->members >> (v - inputs_)) & 1u);
  }
  bool is_result(size_t step) const { return step + 1 == body_.step_count(); }
  ValueId result_of(size_t step) const { return static_cast<ValueId>(step) + inputs_; }
  static void take(size_t step, FoundConv* found) {
    found->members |= uint32_t{1} << step;
    found->last = step;
  }

  const TilingContext& ctx_;
  const FusedBody& body_;
  const Shape* shapes_;
  const ValueId inputs_;
  std::vector<ConvEnd> ends_;
};

}  // namespace

FoundConv find_conv(const TilingContext& ctx, const FusedBody& body, const Shape* shapes) {
  return Matcher(ctx, body, shapes).match();
}

}  // namespace asc::cpu
