#include "backends/cpu/fused_attention.h"

#include <algorithm>

#include "backends/cpu/attention.h"
#include "backends/cpu/strided_view.h"

namespace asc::cpu {
namespace {

class Matcher {
 public:
  Matcher(const TilingContext& ctx, const FusedBody& body, const Shape* shapes)
      : ctx_(ctx), body_(body), shapes_(shapes), inputs_(static_cast<ValueId>(body.input_count())) {}

  FoundAttention match() {
    for (size_t i = 0; i < body_.step_count(); ++i)
      if (body_.step(i).op == "Softmax") return match(static_cast<ValueId>(i) + inputs_);
    return {};
  }

 private:
  FoundAttention match(ValueId softmax) {
    if (!find_steps(softmax)) return {};
    StridedView q(shapes_[0]), k(q), v(q);
    if (!view(&q_, &q, true) || !view(&k_, &k, true) || !view(&v_, &v, false)) return {};
    AttentionForm form;
    if (!find_form(q, k, v, &form)) return {};
    const std::vector<AttentionHead> heads = find_heads(q, k, v);
    if (heads.empty()) return {};
    FoundAttention found;
    found.members = members_;
    found.last = step_of(out_);
    found.operands = {q_, k_, v_};
    found.operands.insert(found.operands.end(), masks_.begin(), masks_.end());
    found.operands.insert(found.operands.end(), factors_.begin(), factors_.end());
    if (nan_value_ != kNoValue) found.operands.push_back(nan_value_);
    found.tiling = tile_attention(ctx_, form, heads);
    return found;
  }

  // --- the steps -----------------------------------------------------------------------------------------------------

  bool is_step(ValueId v) const { return v >= inputs_ && step_of(v) < body_.step_count(); }
  size_t step_of(ValueId v) const { return static_cast<size_t>(v - inputs_); }
  const Node& step(ValueId v) const { return body_.step(step_of(v)); }
  bool is_op(ValueId v, const char* op) const { return is_step(v) && step(v).op == op; }
  void take(ValueId v) { members_ |= uint32_t{1} << step_of(v); }
  const Shape& shape(ValueId v) const { return shapes_[v]; }
  // The step, the only one, that reads v; kNoValue where there is none or another number of them.
  ValueId reader(ValueId v, const char* op, int count = 1) const {
    ValueId found = kNoValue;
    int readers = 0;
    for (size_t i = 0; i < body_.step_count(); ++i)
      for (ValueId in : body_.step(i).inputs) {
        if (in != v) continue;
        ++readers;
        if (body_.step(i).op == op) found = static_cast<ValueId>(i) + inputs_;
      }
    return readers == count ? found : kNoValue;
  }
  bool is_number(ValueId v) const { return v >= 0 && !is_step(v) && shape(v).num_elements() == 1; }

  bool find_steps(ValueId softmax) {
    const int rank = shape(softmax).rank();
    const int64_t axis = step(softmax).attributes.get_int("axis", -1);
    if (rank < 2 || (axis != -1 && axis != rank - 1)) return false;
    take(softmax);
    ValueId weights = softmax;
    if (const ValueId choice = reader(softmax, "Where", 2); choice != kNoValue) {
      const std::vector<ValueId>& in = step(choice).inputs;
      if (!is_op(in[0], "IsNaN") || step(in[0]).inputs[0] != softmax || !is_number(in[1])) return false;
      if (shape(choice) != shape(softmax)) return false;
      nan_value_ = in[1];
      take(in[0]);
      take(choice);
      weights = choice;
    }
    mix_ = reader(weights, "MatMul");
    if (mix_ == kNoValue || step(mix_).inputs[0] != weights) return false;
    take(mix_);
    v_ = step(mix_).inputs[1];
    scores_shape_ = shape(softmax);
    if (!find_product(step(softmax).inputs[0])) return false;
    out_ = reader(mix_, "Transpose");
    if (out_ != kNoValue)
      take(out_);
    else
      out_ = mix_;
    return true;
  }

  // Masks are added after all factors.
  bool find_product(ValueId v) {
    for (; is_step(v) && shape(v) == scores_shape_; take(v)) {
      const std::vector<ValueId>& in = step(v).inputs;
      if (step(v).op == "MatMul") {
        q_ = in[0];
        k_ = in[1];
        take(v);
        return true;
      }
      const size_t side = is_step(in[0]) ? 0 : 1;
      if (step(v).op == "Add") {
        if (!factors_.empty() || masks_.size() == kMaxMasks || is_step(in[1 - side])) return false;
        masks_.push_back(in[1 - side]);
      } else if (!add_factor(v, side)) {
        return false;
      }
      take(v);
      v = in[side];
    }
    return false;
  }

  bool add_factor(ValueId v, size_t side) {
    const Node& n = step(v);
    const bool divides = n.op == "Div";
    if ((!divides && n.op != "Mul") || (divides && side != 0) || factors_.size() == kMaxFactors) return false;
    if (!is_number(n.inputs[1 - side])) return false;
    factors_.push_back(n.inputs[1 - side]);
    divides_.push_back(divides);
    return true;
  }

  // --- operands where they lie ---------------------------------------------------------------------------------------

  // From the operand *v of a product back to the value that its steps start from, which becomes *v.
  bool view(ValueId* v, StridedView* result, bool takes_factors) {
    std::vector<ValueId> moves;  // last first
    while (is_step(*v)) {
      const Node& n = step(*v);
      if (n.op == "Mul" || n.op == "Div") {
        if (!takes_factors || shape(n.inputs[0]) != shape(*v) || !add_factor(*v, 0)) break;
      } else if (n.op != "Transpose" && n.op != "Expand" && n.op != "Reshape" && n.op != "Unsqueeze" &&
                 n.op != "Squeeze") {
        break;
      } else {
        moves.push_back(*v);
      }
      take(*v);
      *v = n.inputs[0];
    }
    *result = StridedView(shape(*v));
    for (int64_t d : shape(*v))
      if (d == 0) return false;
    for (size_t i = moves.size(); i-- > 0;)
      if (!apply(moves[i], result)) return false;
    return result->rank() >= 2;
  }

  bool apply(ValueId move, StridedView* view) const {
    const Node& n = step(move);
    if (n.op == "Expand") return view->expand(shape(move));
    if (n.op != "Transpose") return view->reshape(shape(move));
    std::vector<int64_t> perm = n.attributes.get_ints("perm");
    if (perm.empty())
      for (int i = view->rank(); i-- > 0;) perm.push_back(i);
    for (int64_t& p : perm) p = p < 0 ? p + view->rank() : p;
    view->transpose(perm);
    return true;
  }

  // The distance between rows, where their elements are contiguous.
  static bool find_row(const StridedView& v, int64_t* row) {
    const int last = v.rank() - 1;
    const int64_t n = v.size(last);
    int64_t step;
    if (!v.stride(last, &step) || (n > 1 && step != 1) || !v.stride(last - 1, row)) return false;
    if (v.size(last - 1) == 1) *row = n;
    return *row >= n;
  }

  bool find_form(const StridedView& q, const StridedView& k, const StridedView& v, AttentionForm* f) {
    const Shape& mixed = shape(mix_);
    const int rank = mixed.rank();
    if (rank != scores_shape_.rank() || q.rank() > rank || k.rank() > rank || v.rank() > rank) return false;
    for (int i = 0; i + 2 < rank; ++i)
      if (mixed[i] != scores_shape_[i]) return false;
    f->rows = scores_shape_[rank - 2];
    f->keys = scores_shape_[rank - 1];
    f->width = q.size(q.rank() - 1);
    f->value_width = mixed[rank - 1];
    if (!find_row(q, &f->q_row) || !find_row(v, &f->v_row) || !find_keys(k, f) || !find_masks(f)) return false;
    out_view_.emplace_back(shape(out_));
    if (out_ != mix_) {
      std::vector<int64_t> perm = step(out_).attributes.get_ints("perm"), back(static_cast<size_t>(rank));
      if (static_cast<int>(perm.size()) != rank) return false;
      for (int i = 0; i < rank; ++i) back[perm[i] < 0 ? perm[i] + rank : perm[i]] = i;
      out_view_[0].transpose(back);
    }
    f->factors = static_cast<int>(factors_.size());
    std::copy(divides_.begin(), divides_.end(), f->divides);
    f->guards_nan = nan_value_ != kNoValue;
    return find_row(out_view_[0], &f->out_row);
  }

  static bool find_keys(const StridedView& k, AttentionForm* f) {
    const int last = k.rank() - 1;
    int64_t row, column;
    if (!k.stride(last, &row) || !k.stride(last - 1, &column)) return false;
    f->k_row = f->keys == 1 ? std::max<int64_t>(f->width, column) : row;
    f->k_column = f->width == 1 ? 1 : column;
    if (f->k_column == 1) return f->k_row >= f->width;
    return (f->keys == 1 || f->k_row == 1) && f->k_column >= f->keys;
  }

  bool find_masks(AttentionForm* f) {
    f->masks = static_cast<int>(masks_.size());
    for (size_t m = 0; m < masks_.size(); ++m) {
      const Shape& s = shape(masks_[m]);
      const int rank = s.rank();
      if (rank == 0 || rank > scores_shape_.rank() || s[rank - 1] != f->keys) return false;
      f->mask_row[m] = rank < 2 || s[rank - 2] == 1 ? 0 : f->keys;
    }
    return true;
  }

  // --- heads ---------------------------------------------------------------------------------------------------------

  std::vector<AttentionHead> find_heads(const StridedView& q, const StridedView& k, const StridedView& v) const {
    constexpr int64_t kMaxHeads = int64_t{1} << 16;
    const int dims = scores_shape_.rank() - 2;
    const int64_t count = scores_shape_.span_of(0, dims);
    if (count > kMaxHeads) return {};
    std::vector<StridedView> masks;
    for (ValueId m : masks_) masks.emplace_back(shape(m));
    std::vector<AttentionHead> heads(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      AttentionHead& h = heads[static_cast<size_t>(i)];
      h.q = offset(q, dims, i);
      h.k = offset(k, dims, i);
      h.v = offset(v, dims, i);
      h.out = offset(out_view_[0], dims, i);
      for (size_t m = 0; m < masks.size(); ++m) h.mask[m] = offset(masks[m], dims, i);
    }
    return heads;
  }

  // Of matrix `i` of the scores, in an operand that broadcasts to them.
  int64_t offset(const StridedView& v, int dims, int64_t i) const {
    int64_t sum = 0;
    for (int d = dims - 1; d >= 0; --d) {
      const int64_t index = i % scores_shape_[d];
      i /= scores_shape_[d];
      const int own = d - (dims + 2 - v.rank());
      if (own >= 0 && v.size(own) != 1) sum += v.offset(own, index);
    }
    return sum;
  }

  const TilingContext& ctx_;
  const FusedBody& body_;
  const Shape* shapes_;
  const ValueId inputs_;
  uint32_t members_ = 0;
  ValueId q_ = kNoValue, k_ = kNoValue, v_ = kNoValue, mix_ = kNoValue, out_ = kNoValue, nan_value_ = kNoValue;
  std::vector<ValueId> masks_, factors_;
  std::vector<bool> divides_;
  Shape scores_shape_;
  std::vector<StridedView> out_view_;  // of the result as the product gives it; one
};

}  // namespace

FoundAttention find_attention(const TilingContext& ctx, const FusedBody& body, const Shape* shapes) {
  return Matcher(ctx, body, shapes).match();
}

}  // namespace asc::cpu
