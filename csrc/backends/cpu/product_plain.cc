// Products of float64 (OpenBLAS) and of integers (plain loops that wrap around).
#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>

#include "backends/cpu/blas.h"
#include "backends/cpu/product.h"

namespace asc::cpu {
namespace {

struct PlainProduct : TilingOf<PlainProduct> {
  Product product;
};

void multiply(const Product& p, const double* a, const double* b, double* c) {
  gemm(p.trans_a, p.trans_b, p.m, p.n, p.k, static_cast<double>(p.alpha), a, p.lda(), b, p.ldb(), 0.0, c, p.n);
}

template <typename T, typename = std::enable_if_t<std::is_integral_v<T>>>
void multiply(const Product& p, const T* a, const T* b, T* c) {
  using U = std::make_unsigned_t<T>;  // overflow wraps
  const int64_t b_row = p.trans_b ? 1 : p.n, b_column = p.trans_b ? p.k : 1;
  for (int64_t i = 0; i < p.m; ++i) {
    auto* row = reinterpret_cast<U*>(c + i * p.n);
    std::fill(row, row + p.n, U{0});
    for (int64_t q = 0; q < p.k; ++q) {
      const U x = static_cast<U>(p.trans_a ? a[q * p.m + i] : a[i * p.k + q]);
      const T* line = b + q * b_row;
      for (int64_t j = 0; j < p.n; ++j) row[j] += x * static_cast<U>(line[j * b_column]);
    }
    if (p.alpha != 1)
      for (int64_t j = 0; j < p.n; ++j) row[j] *= static_cast<U>(static_cast<int64_t>(p.alpha));
  }
}

template <typename T>
void add_rows(const Product& p, const T* add, T* c) {
  for (int64_t i = 0; i < p.m; ++i) {
    T* row = c + i * p.n;
    const T* from = add + i * p.add_row;
    for (int64_t j = 0; j < p.n; ++j) {
      if constexpr (std::is_integral_v<T>) {
        using U = std::make_unsigned_t<T>;
        const U x = static_cast<U>(from[j * p.add_column]) * static_cast<U>(static_cast<int64_t>(p.beta));
        row[j] = static_cast<T>(static_cast<U>(row[j]) + x);
      } else {
        row[j] += static_cast<T>(p.beta) * from[j * p.add_column];
      }
    }
  }
}

template <typename T>
Status launch_plain(const Task& task, void* const* slots, Worker&) {
  const Product& p = static_cast<const PlainProduct*>(task.tiling)->product;
  const T *a = task.input<T>(slots, 0), *b = task.input<T>(slots, 1);
  T* c = task.output<T>(slots, 0);
  for_each_matrix(p, [&](int64_t a_offset, int64_t b_offset, int64_t c_offset) {
    multiply(p, a + a_offset, b + b_offset, c + c_offset);
    if (p.has_add) add_rows(p, task.input<T>(slots, 2), c + c_offset);
  });
  return Status::kOk;
}

LaunchFn launch_of(const TilingContext& ctx) {
  switch (ctx.dtype(0)) {
    case DType::kFloat64:
      return launch_plain<double>;
    case DType::kInt32:
      return launch_plain<int32_t>;
    case DType::kUInt32:
      return launch_plain<uint32_t>;
    case DType::kInt64:
      return launch_plain<int64_t>;
    case DType::kUInt64:
      return launch_plain<uint64_t>;
    default:
      ctx.unsupported(std::string("element type ") + name_of(ctx.dtype(0)) + "; insert a Cast");
  }
}

bool is_small_integer(float x) { return std::floor(x) == x && std::fabs(x) < 16777216.0f; }

}  // namespace

std::shared_ptr<const Tiling> tile_plain_product(const TilingContext& ctx, const Product& p) {
  const LaunchFn launch = launch_of(ctx);
  if (p.is_empty()) return create_empty_tiling();
  const bool is_double = ctx.dtype(0) == DType::kFloat64;
  if (!is_double && !(is_small_integer(p.alpha) && is_small_integer(p.beta)))
    ctx.unsupported("fractional alpha or beta with integer operands; insert a Cast to float32");
  auto t = create_tiling<PlainProduct>(launch, is_double ? blas_name() : "scalar");
  t->product = p;
  return t;
}

}  // namespace asc::cpu
