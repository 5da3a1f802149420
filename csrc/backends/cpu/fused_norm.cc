#include "backends/cpu/fused_norm.h"

#include "backends/cpu/tiling_base.h"

namespace asc::cpu {
namespace {

static_assert(kMaxFusedSteps <= 32, "members are bits of a word");

class Matcher {
 public:
  Matcher(const FusedBody& body, const Shape* shapes) : body_(body), shapes_(shapes) {
    for (size_t i = 0; i < body.step_count(); ++i)
      for (ValueId v : body.step(i).inputs)
        if (v != kNoValue && static_cast<size_t>(v) < kMaxValues) ++uses_[v];
  }

  // The normalisation whose square root is step `root`; false where it is something else.
  bool match(size_t root, FoundNorm* found) {
    const ValueId deviation = result_of(root);
    if (!is_op(deviation, "Sqrt")) return false;
    FoundNorm n;
    const ValueId sum = take(n, input(deviation, 0), "Add", 1);
    if (sum == kNoValue) return false;
    ValueId variance = input(sum, 0);
    n.epsilon = input(sum, 1);
    if (!is_op(variance, "ReduceMean")) std::swap(variance, n.epsilon);
    if (take(n, variance, "ReduceMean", 1) == kNoValue || count_of(shapes_[n.epsilon]) != 1) return false;
    const ValueId square = take(n, input(variance, 0), "Mul", 1);
    if (square == kNoValue || input(square, 0) != input(square, 1)) return false;
    const ValueId difference = input(square, 0);
    n.members |= bit(deviation);
    ValueId result = quotient(n, difference, deviation);
    if (result == kNoValue) return false;
    find_source(n, difference);
    if (!is_row_mean(variance, n.x) || shapes_[sum] != shapes_[variance] || shapes_[result] != shapes_[n.x])
      return false;
    result = parameter(n, result, "Mul", &n.scale);
    if (!n.is_rms && n.scale != kNoValue) result = parameter(n, result, "Add", &n.bias);
    n.last = step_of(result);
    *found = n;
    return true;
  }

 private:
  static constexpr size_t kMaxValues = kMaxFusedInputs + kMaxFusedSteps;

  ValueId result_of(size_t step) const { return static_cast<ValueId>(body_.input_count() + step); }
  size_t step_of(ValueId v) const { return static_cast<size_t>(v) - body_.input_count(); }
  bool is_op(ValueId v, const char* op) const {
    return v >= static_cast<ValueId>(body_.input_count()) && step_of(v) < body_.step_count() &&
           body_.step(step_of(v)).op == op;
  }
  ValueId input(ValueId v, size_t i) const { return body_.step(step_of(v)).inputs[i]; }
  uint32_t bit(ValueId v) const { return uint32_t{1} << step_of(v); }

  // Value v as a member, where that operator makes it and it is read so often; kNoValue otherwise.
  ValueId take(FoundNorm& n, ValueId v, const char* op, int uses) const {
    if (!is_op(v, op) || uses_[v] != uses) return kNoValue;
    n.members |= bit(v);
    return v;
  }

  // The only step that reads v, as its result; kNoValue for none or several.
  ValueId reader(ValueId v) const {
    if (uses_[v] != 1) return kNoValue;
    for (size_t i = 0; i < body_.step_count(); ++i)
      for (ValueId in : body_.step(i).inputs)
        if (in == v) return result_of(i);
    return kNoValue;
  }
  ValueId other_input(ValueId v, ValueId one) const { return input(v, input(v, 0) == one ? 1 : 0); }

  // difference / deviation, or difference * (1 / deviation).
  ValueId quotient(FoundNorm& n, ValueId difference, ValueId deviation) const {
    ValueId v = reader(deviation);
    if (is_op(v, "Div") && input(v, 0) == difference && input(v, 1) == deviation) {
      n.members |= bit(v);
      return v;
    }
    if (!is_op(v, "Reciprocal")) return kNoValue;
    n.members |= bit(v);
    const ValueId inverse = v;
    v = reader(inverse);
    if (!is_op(v, "Mul") || other_input(v, inverse) != difference) return kNoValue;
    n.members |= bit(v);
    return v;
  }

  // The difference is x - mean(x), read by the square (twice) and the quotient only; or it is x itself.
  void find_source(FoundNorm& n, ValueId difference) const {
    n.is_rms = true;
    n.x = difference;
    if (!is_op(difference, "Sub") || uses_[difference] != 3) return;
    const ValueId mean = input(difference, 1), x = input(difference, 0);
    if (!is_op(mean, "ReduceMean") || uses_[mean] != 1 || input(mean, 0) != x || !is_row_mean(mean, x)) return;
    n.members |= bit(difference) | bit(mean);
    n.is_rms = false;
    n.x = x;
  }

  // Whether v, a mean over some dimensions of a tensor shaped like x, is one over the last dimension: a dimension of
  // size 1 makes no difference.
  bool is_row_mean(ValueId v, ValueId x) const {
    Shape kept = shapes_[x];
    if (kept.rank() == 0) return false;
    kept[kept.rank() - 1] = 1;
    return shapes_[v] == kept;
  }

  // The result with one parameter per element of the row, where that is what comes next.
  ValueId parameter(FoundNorm& n, ValueId result, const char* op, ValueId* parameter) const {
    const ValueId next = reader(result);
    if (!is_op(next, op) || shapes_[next] != shapes_[n.x]) return result;
    const ValueId other = other_input(next, result);
    const Shape& shape = shapes_[other];
    const int64_t size = shapes_[n.x][shapes_[n.x].rank() - 1];
    const bool is_member = is_op(other, body_.step(step_of(next)).op.c_str()) && (n.members & bit(other));
    if (other == n.x || is_member || shape.rank() == 0 || shape[shape.rank() - 1] != size || count_of(shape) != size)
      return result;
    *parameter = other;
    n.members |= bit(next);
    return next;
  }

  const FusedBody& body_;
  const Shape* shapes_;
  int uses_[kMaxValues] = {};
};

}  // namespace

std::vector<FoundNorm> find_norms(const FusedBody& body, const Shape* shapes) {
  std::vector<FoundNorm> norms;
  Matcher matcher(body, shapes);
  for (size_t i = 0; i < body.step_count(); ++i) {
    FoundNorm n;
    if (matcher.match(i, &n)) norms.push_back(n);
  }
  return norms;
}

}  // namespace asc::cpu
