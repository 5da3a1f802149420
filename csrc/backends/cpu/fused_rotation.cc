#include "backends/cpu/fused_rotation.h"

#include <cstring>

namespace asc::cpu {
namespace {

// Rows of `width` elements, the halves exchanged and the new first one negated. `x` and `y` are apart.
void rotate_rows(const float* x, float* y, size_t n, float width, float) {
  const auto size = static_cast<size_t>(width), half = size / 2;
  for (size_t i = 0; i < n; i += size) {
    vec_table().neg(x + i + half, y + i, half);
    std::memcpy(y + i + half, x + i, half * sizeof(float));
  }
}

class Matcher {
 public:
  Matcher(const ShapeContext& ctx, const FusedBody& body, const Shape* shapes, int64_t tile)
      : ctx_(ctx), body_(body), shapes_(shapes), tile_(tile) {}

  bool match(size_t concat, FoundRotation* found) const {
    const Node& join = body_.step(concat);
    if (join.op != "Concat" || join.inputs.size() != 2 || !is_op(join.inputs[0], "Neg")) return false;
    const ValueId negated = join.inputs[0], second = step(negated).inputs[0], first = join.inputs[1];
    if (!is_op(first, "Slice") || !is_op(second, "Slice") || step(first).inputs[0] != step(second).inputs[0])
      return false;
    const ValueId x = step(first).inputs[0];
    const Shape& shape = shapes_[x];
    if (x < 0 || static_cast<size_t>(x) >= body_.input_count() || shape.rank() == 0) return false;
    const int64_t width = shape[shape.rank() - 1], axis = join.attributes.get_int("axis", 0);
    if (width == 0 || width % 2 != 0 || tile_ % width != 0 || (axis != -1 && axis != shape.rank() - 1)) return false;
    if (!is_half(first, shape, 0) || !is_half(second, shape, width / 2)) return false;
    for (ValueId v : {negated, first, second})
      if (uses(v) != 1) return false;
    found->x = x;
    found->last = concat;
    found->members = bit(first) | bit(second) | bit(negated) | uint32_t{1} << concat;
    found->step.param = rotate_rows;
    found->step.p = static_cast<float>(width);
    return true;
  }

 private:
  size_t step_of(ValueId v) const { return static_cast<size_t>(v) - body_.input_count(); }
  const Node& step(ValueId v) const { return body_.step(step_of(v)); }
  uint32_t bit(ValueId v) const { return uint32_t{1} << step_of(v); }
  bool is_op(ValueId v, const char* op) const {
    return v >= static_cast<ValueId>(body_.input_count()) && step_of(v) < body_.step_count() && step(v).op == op;
  }
  int uses(ValueId v) const {
    int count = 0;
    for (size_t i = 0; i < body_.step_count(); ++i)
      for (ValueId in : body_.step(i).inputs) count += in == v;
    return count;
  }

  // Whether the Slice takes elements start to start + width / 2 of the last dimension, and all of the others.
  bool is_half(ValueId slice, const Shape& x, int64_t start) const {
    Shape half = x;
    half[half.rank() - 1] /= 2;
    const std::vector<ValueId>& in = step(slice).inputs;
    if (shapes_[slice] != half || in.size() < 4 || in[3] == kNoValue) return false;
    const std::vector<int64_t> starts = int_values(*body_.host(ctx_, in[1]));
    const std::vector<int64_t> axes = int_values(*body_.host(ctx_, in[3]));
    if (starts.size() != 1 || axes.size() != 1) return false;
    if (in.size() > 4 && in[4] != kNoValue && int_values(*body_.host(ctx_, in[4])) != std::vector<int64_t>{1})
      return false;
    const int64_t width = x[x.rank() - 1];
    return (axes[0] == -1 || axes[0] == x.rank() - 1) && (starts[0] == start || starts[0] == start - width);
  }

  const ShapeContext& ctx_;
  const FusedBody& body_;
  const Shape* shapes_;
  const int64_t tile_;
};

}  // namespace

std::vector<FoundRotation> find_rotations(const ShapeContext& ctx, const FusedBody& body, const Shape* shapes,
                                          int64_t tile) {
  std::vector<FoundRotation> rotations;
  const Matcher matcher(ctx, body, shapes, tile);
  for (size_t i = 0; i < body.step_count(); ++i) {
    FoundRotation r;
    if (matcher.match(i, &r)) rotations.push_back(r);
  }
  return rotations;
}

}  // namespace asc::cpu
