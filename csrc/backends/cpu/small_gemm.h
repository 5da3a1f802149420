// Float32 matrix products in plain vector code, one version per instruction set. No packing and no set-up: the quickest
// way for operands that fit the caches, and for a single row at any size.
#pragma once

#include <cstdint>

#include "backends/cpu/isa.h"

namespace asc::cpu {

// c[m, n] = alpha * a·b + beta * add, row-major. `c` must not overlap any operand.
struct SmallGemmArgs {
  int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;  // a(i, p) = a[i * a_row + p * a_column]
  int64_t a_row = 0, a_column = 1;
  const float* b = nullptr;  // rows: b(p, j) = b[p * ldb + j]; dots: b(p, j) = b[j * ldb + p]
  int64_t ldb = 0;
  float* c = nullptr;
  int64_t ldc = 0;
  const float* add = nullptr;  // null: nothing to add; add(i, j) = add[i * add_row + j]
  int64_t add_row = 0;
  float alpha = 1, beta = 1;
};

struct SmallGemm {
  void (*rows)(const SmallGemmArgs& args);
  // b is transposed; a_column must be 1. Meant for few rows: every dot product ends in a horizontal sum.
  void (*dots)(const SmallGemmArgs& args);
};

// The version of current_isa(). Results depend on the values and the extents only, not on alignment or thread.
const SmallGemm& small_gemm();
// One version, for tests; null where it was not compiled.
const SmallGemm* small_gemm_of(Isa isa);

// Whether rows() is the quicker way for this product on one thread.
bool prefers_rows(int64_t m, int64_t n, int64_t k);
// The same for dots().
bool prefers_dots(int64_t m, int64_t n, int64_t k);

}  // namespace asc::cpu
