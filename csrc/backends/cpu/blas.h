// General matrix products in float32 and float64, row-major: OpenBLAS on one thread, or an own blocked loop where it is
// absent or its 32-bit extents are too small. Safe to call from any thread; results depend on values and extents only.
#pragma once

#include <cstdint>

namespace asc::cpu {

// c[m, n] = alpha * op(a)·op(b) + beta * c; op transposes where asked. With beta 0, c is not read.
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
          const float* b, int64_t ldb, float beta, float* c, int64_t ldc);
void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, double alpha, const double* a, int64_t lda,
          const double* b, int64_t ldb, double beta, double* c, int64_t ldc);

// "openblas" or "blocked".
const char* blas_name();

}  // namespace asc::cpu
