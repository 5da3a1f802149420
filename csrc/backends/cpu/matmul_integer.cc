// MatMulInteger through float32 products. Operands less their zero points lie in [-255, 255], so that a sum of up to
// 256 products is below 2^24 and exact in float32, whatever the order; longer sums are taken in pieces.
#include <algorithm>

#include "backends/cpu/blas.h"
#include "backends/cpu/product.h"
#include "backends/cpu/quantize.h"
#include "base/hash.h"

namespace asc::cpu {
namespace {

constexpr int64_t kExactTerms = 256;

struct MatMulIntegerTiling : TilingOf<MatMulIntegerTiling> {
  Product product;
  bool a_is_signed = false, b_is_signed = false;
  bool has_b_zeros = false;
  bool has_row_zeros = false, has_column_zeros = false;  // one zero point for each row of a, column of b
  int64_t b_count = 0;                                   // elements of b
};

// to[i, j] = from[i, j] - zero, where the zero point is one number, one for each row or one for each column.
template <typename Q>
void widen(const Q* from, const Q* zeros, bool by_row, bool by_column, int64_t rows, int64_t columns, float* to) {
  for (int64_t i = 0; i < rows; ++i, from += columns, to += columns) {
    if (by_column) {
#pragma omp simd
      for (int64_t j = 0; j < columns; ++j) to[j] = static_cast<float>(int32_t{from[j]} - int32_t{zeros[j]});
      continue;
    }
    const int32_t zero = zeros ? zeros[by_row ? i : 0] : 0;
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) to[j] = static_cast<float>(int32_t{from[j]} - zero);
  }
}

void widen_any(bool is_signed, const void* from, const void* zeros, bool by_row, bool by_column, int64_t rows,
               int64_t columns, float* to) {
  if (is_signed)
    widen(static_cast<const int8_t*>(from), static_cast<const int8_t*>(zeros), by_row, by_column, rows, columns, to);
  else
    widen(static_cast<const uint8_t*>(from), static_cast<const uint8_t*>(zeros), by_row, by_column, rows, columns, to);
}

void widen_b(const MatMulIntegerTiling& t, const void* from, const void* zeros, float* to) {
  const int64_t columns = t.product.n;
  widen_any(t.b_is_signed, from, zeros, false, t.has_column_zeros, t.b_count / columns, columns, to);
}

void pack_b(const Tiling& tiling, const void* const* inputs, void* packed) {
  const auto& t = static_cast<const MatMulIntegerTiling&>(tiling);
  widen_b(t, inputs[1], t.has_b_zeros ? inputs[3] : nullptr, static_cast<float*>(packed));
}

void multiply(const Product& p, const float* a, const float* b, float* sums, int32_t* c) {
  for (int64_t begin = 0; begin < p.k; begin += kExactTerms) {
    const int64_t terms = std::min(kExactTerms, p.k - begin);
    gemm(false, false, p.m, p.n, terms, 1.0f, a + begin, p.k, b + begin * p.n, p.n, 0.0f, sums, p.n);
    for (int64_t i = 0; i < p.m * p.n; ++i) {
      const auto sum = static_cast<uint32_t>(static_cast<int32_t>(sums[i]));
      c[i] = static_cast<int32_t>(begin == 0 ? sum : static_cast<uint32_t>(c[i]) + sum);  // wraps around
    }
  }
  if (p.k == 0) std::fill_n(c, p.m * p.n, 0);
}

Status launch_matmul_integer(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const MatMulIntegerTiling*>(task.tiling);
  const Product& p = t.product;
  const auto* a_zeros = task.has_input(slots, 2) ? task.input<char>(slots, 2) : nullptr;
  const char *a_bytes = task.input<char>(slots, 0), *b_bytes = task.input<char>(slots, 1);
  auto* a = static_cast<float*>(task.workspace(slots));
  float* sums = a + p.m * p.k;
  float* b = sums + p.m * p.n;
  const auto* all_b = t.packed_bytes ? static_cast<const float*>(task.packed(slots)) : b;
  if (!t.packed_bytes) widen_b(t, b_bytes, task.has_input(slots, 3) ? task.input<char>(slots, 3) : nullptr, b);
  int32_t* c = task.output<int32_t>(slots, 0);
  for_each_matrix(p, [&](int64_t a_offset, int64_t b_offset, int64_t c_offset) {
    widen_any(t.a_is_signed, a_bytes + a_offset, a_zeros, t.has_row_zeros, false, p.m, p.k, a);
    multiply(p, a, all_b + b_offset, sums, c + c_offset);
  });
  return Status::kOk;
}

std::shared_ptr<const Tiling> tile_matmul_integer(const TilingContext& ctx) {
  const Product p = make_matmul_product(ctx);
  if (p.is_empty()) return create_empty_tiling();
  auto t = create_tiling<MatMulIntegerTiling>(launch_matmul_integer, "float32 products, exact");
  t->product = p;
  t->a_is_signed = ctx.dtype(0) == DType::kInt8;
  t->b_is_signed = ctx.dtype(1) == DType::kInt8;
  t->has_b_zeros = ctx.has_input(3);
  t->has_row_zeros = ctx.has_input(2) && count_of(ctx.input(2)) != 1;
  t->has_column_zeros = ctx.has_input(3) && count_of(ctx.input(3)) != 1;
  t->b_count = count_of(ctx.input(1));
  size_t floats = static_cast<size_t>(p.m * p.k + p.m * p.n);
  if (ctx.is_constant(1) && (!ctx.has_input(3) || ctx.is_constant(3))) {
    t->packed_bytes = static_cast<size_t>(t->b_count) * sizeof(float);
    const uint64_t words[] = {0x6D6D69, static_cast<uint64_t>(p.n), t->b_is_signed,
                              static_cast<uint64_t>(t->has_column_zeros) << 1 | t->has_b_zeros};
    t->packed_layout = hash_words(words, 4) | 1;
    t->pack = pack_b;
  } else {
    floats += static_cast<size_t>(t->b_count);
  }
  t->workspace_bytes = floats * sizeof(float);
  return t;
}

}  // namespace

void register_matmul_integer(KernelRegistry& registry) {
  registry.add("MatMulInteger", DTypeSet(DType::kInt8) | DType::kUInt8, tile_matmul_integer);
}

}  // namespace asc::cpu
