// Helpers for writing infer_shape rules: registrations that read as a sentence, host values read in place, errors.
// Nothing here allocates, except on the way to an error.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "ops/op.h"

namespace asc {

// Above every real memory, and low enough that a size in bytes cannot overflow.
constexpr int64_t kMaxElements = int64_t{1} << 56;

// --- registration ---------------------------------------------------------------------------------------------------

// OpDef("Slice", 3, 5, infer_slice, slice_type).host_able().reads_host({1, 2, 3, 4})
struct OpDef : Op {
  OpDef(std::string op, int min_in, int max_in, decltype(Op::infer_shape) shape, decltype(Op::infer_dtype) dtype) {
    name = std::move(op);
    min_inputs = min_in;
    max_inputs = max_in;
    infer_shape = shape;
    infer_dtype = dtype;
  }
  OpDef& outputs(int min, int max) {
    min_outputs = min;
    max_outputs = max;
    return *this;
  }
  OpDef& of_kind(OpKind k) {
    kind = k;
    return *this;
  }
  OpDef& host_able() {
    is_host_able = true;
    return *this;
  }
  OpDef& random() {
    is_random = true;
    return *this;
  }
  OpDef& shape_only() {
    is_shape_only = true;
    return *this;
  }
  OpDef& reads_host(std::initializer_list<int> inputs) {
    for (int i : inputs) host_inputs |= uint64_t{1} << i;
    return *this;
  }
};

// --- errors ---------------------------------------------------------------------------------------------------------

inline void append_text(std::string& s, std::string_view part) { s += part; }
inline void append_text(std::string& s, int64_t part) { s += std::to_string(part); }
inline void append_text(std::string& s, const Shape& part) { s += part.text(); }
inline void append_text(std::string& s, DType part) { s += name_of(part); }

// message("axis ", axis, " of ", shape): texts, integers, shapes and dtypes, joined.
template <typename... Parts>
[[gnu::cold]] std::string message(const Parts&... parts) {
  std::string s;
  (append_text(s, parts), ...);
  return s;
}

// "[infer_shape] <op> '<node>': <what>": GraphError for malformed models, UnsupportedError for valid ones.
[[noreturn, gnu::cold]] void fail_shape(const ShapeContext& ctx, const std::string& what);
[[noreturn, gnu::cold]] void fail_unsupported(const ShapeContext& ctx, const std::string& what);

// --- attributes -----------------------------------------------------------------------------------------------------

// An attribute that is 0 or 1. Throws GraphError for other numbers: runtimes disagree on what they mean.
inline bool flag(const ShapeContext& ctx, const char* name, bool fallback) {
  const int64_t value = ctx.attr(name, fallback);
  if (value != 0 && value != 1) fail_shape(ctx, message(name, " is ", value, "; expected 0 or 1"));
  return value != 0;
}

// --- shapes ---------------------------------------------------------------------------------------------------------

// Throws GraphError where a dimension is negative or the product of the non-zero ones exceeds kMaxElements, as NumPy
// does: so products over any of the axes are safe later on. Needed only where an output can be larger than the inputs.
inline void check_size(const ShapeContext& ctx, const Shape& s) {
  int64_t n = 1;
  for (int64_t d : s)
    if (d < 0 || __builtin_mul_overflow(n, d ? d : 1, &n) || n > kMaxElements)
      fail_shape(ctx, message("shape ", s, " is negative or too large; check the operands"));
}

// a * b and a + b of non-negative numbers. Throws GraphError where the result does not fit.
inline int64_t checked_product(const ShapeContext& ctx, int64_t a, int64_t b) {
  int64_t n;
  if (__builtin_mul_overflow(a, b, &n)) fail_shape(ctx, message("size ", a, " * ", b, " is too large"));
  return n;
}
inline int64_t checked_sum(const ShapeContext& ctx, int64_t a, int64_t b) {
  int64_t n;
  if (__builtin_add_overflow(a, b, &n)) fail_shape(ctx, message("size ", a, " + ", b, " is too large"));
  return n;
}

// Throws GraphError unless input i has that rank.
inline void check_rank(const ShapeContext& ctx, int i, int rank) {
  if (ctx.input(i).rank() != rank)
    fail_shape(ctx, message("input ", i, " has shape ", ctx.input(i), "; expected rank ", rank));
}

// Throws GraphError unless input i holds exactly one element (rank 0, or [1]), or is absent.
inline void check_single(const ShapeContext& ctx, int i) {
  if (ctx.has_input(i) && (ctx.input(i).rank() > 1 || ctx.input(i).num_elements() != 1))
    fail_shape(ctx, message("input ", i, " has shape ", ctx.input(i), "; expected one element"));
}

// Throws GraphError where `s` does not broadcast to `target` without changing it.
void check_broadcasts_to(const ShapeContext& ctx, const Shape& s, const Shape& target, const char* what);

// Shapes and element types of common families: outputs like input 0; broadcast of all inputs.
inline void infer_same_shape(InferContext& ctx) { ctx.set_output(0, ctx.input(0)); }

// --- host values ----------------------------------------------------------------------------------------------------

// The elements of an int32 or int64 host value (rank 0 or 1), read in place. Throws GraphError for anything else.
class HostInts {
 public:
  HostInts(const ShapeContext& ctx, int input) {
    const HostTensor& t = ctx.host(input);
    if ((t.dtype != DType::kInt64 && t.dtype != DType::kInt32) || t.shape.rank() > 1)
      fail_shape(ctx, message("input ", input, " is ", t.dtype, t.shape, "; expected a list of int64 or int32"));
    size_ = t.shape.rank() == 0 ? 1 : t.shape[0];
    is_wide_ = t.dtype == DType::kInt64;
    data_ = t.data();
  }
  int64_t size() const { return size_; }
  int64_t operator[](int64_t i) const {
    return is_wide_ ? static_cast<const int64_t*>(data_)[i] : static_cast<const int32_t*>(data_)[i];
  }

 private:
  const void* data_;
  int64_t size_;
  bool is_wide_;
};

// The only element of such a value.
inline int64_t host_int(const ShapeContext& ctx, int input) {
  const HostInts v(ctx, input);
  if (v.size() != 1) fail_shape(ctx, message("input ", input, " has ", v.size(), " elements; expected one"));
  return v[0];
}

// The only element of a numeric host value of any type but the 16-bit floats.
double host_number(const ShapeContext& ctx, int input);

// Axes as a bit set, after normalisation against `rank`. Throws GraphError for axes out of range or given twice.
inline uint32_t axis_mask(const ShapeContext& ctx, const HostInts& axes, int rank) {
  uint32_t mask = 0;
  for (int64_t i = 0; i < axes.size(); ++i) {
    const uint32_t bit = 1u << normalize_axis(axes[i], rank, ctx);
    if (mask & bit) fail_shape(ctx, message("axis ", axes[i], " is given twice; name each axis once"));
    mask |= bit;
  }
  return mask;
}

// One axis of Slice, resolved as ONNX defines it: elements start, start + step, … of an axis of `dim` elements.
struct SliceRange {
  int64_t start, step, count;
};

// `step` is not 0.
inline SliceRange slice_range(int64_t start, int64_t end, int64_t step, int64_t dim) {
  if (start < 0) start += dim;  // cannot overflow: dim >= 0
  if (end < 0) end += dim;
  if (step > 0) {
    start = std::clamp<int64_t>(start, 0, dim);
    end = std::clamp<int64_t>(end, 0, dim);
    return {start, step, end > start ? (end - start - 1) / step + 1 : 0};
  }
  step = std::max<int64_t>(step, -INT64_MAX);
  start = std::max<int64_t>(std::min(start, dim - 1), dim ? 0 : -1);
  end = std::max<int64_t>(std::min(end, dim - 1), -1);
  return {start, step, start > end ? (start - end - 1) / -step + 1 : 0};
}

}  // namespace asc
