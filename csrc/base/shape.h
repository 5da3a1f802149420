// A concrete tensor shape: up to kMaxRank dimensions, stored inline; a plain value.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>

#include "base/array_view.h"
#include "base/error.h"

namespace asc {

constexpr int kMaxRank = 8;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) {
    for (int64_t d : dims) push_back(d);
  }
  explicit Shape(ArrayView<const int64_t> dims) {
    for (int64_t d : dims) push_back(d);
  }

  int rank() const { return rank_; }
  bool is_scalar() const { return rank_ == 0; }
  int64_t operator[](int axis) const { return dims_[axis]; }
  int64_t& operator[](int axis) { return dims_[axis]; }
  const int64_t* begin() const { return dims_.data(); }
  const int64_t* end() const { return dims_.data() + rank_; }
  ArrayView<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }

  // Throws GraphError beyond kMaxRank.
  void push_back(int64_t dim) {
    if (rank_ == kMaxRank) throw GraphError("[shape] rank above 8 is not supported; reshape to fewer dimensions");
    dims_[rank_++] = dim;
  }
  void insert(int axis, int64_t dim) {
    push_back(0);
    for (int i = rank_ - 1; i > axis; --i) dims_[i] = dims_[i - 1];
    dims_[axis] = dim;
  }
  void erase(int axis) {
    for (int i = axis; i + 1 < rank_; ++i) dims_[i] = dims_[i + 1];
    --rank_;
  }

  bool operator==(const Shape& o) const {
    if (rank_ != o.rank_) return false;
    for (int i = 0; i < rank_; ++i)
      if (dims_[i] != o.dims_[i]) return false;
    return true;
  }
  bool operator!=(const Shape& o) const { return !(*this == o); }

  // Product of the dimensions: 1 for a scalar, 0 where any dimension is 0. Throws GraphError where a dimension is
  // negative or the product exceeds 2^56, so that byte counts fit 64 bits.
  int64_t num_elements() const {
    int64_t n = 1;
    bool is_empty = false, is_valid = true;
    for (int64_t d : *this) {
      is_empty = is_empty || d == 0;
      is_valid = is_valid && d >= 0;
    }
    if (is_empty && is_valid) return 0;
    for (int64_t d : *this) is_valid = is_valid && !__builtin_mul_overflow(n, d, &n) && n <= (int64_t{1} << 56);
    if (!is_valid) throw GraphError("[shape] too large or negative: " + text());
    return n;
  }
  // Product of dims [from, to).
  int64_t span_of(int from, int to) const {
    int64_t n = 1;
    for (int i = from; i < to; ++i) n *= dims_[i];
    return n;
  }

  // "[2, 3]"
  std::string text() const {
    std::string s = "[";
    for (int i = 0; i < rank_; ++i) s += (i ? ", " : "") + std::to_string(dims_[i]);
    return s + "]";
  }

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int32_t rank_ = 0;
};

}  // namespace asc
