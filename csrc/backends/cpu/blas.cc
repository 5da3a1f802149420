#include "backends/cpu/blas.h"

#include <algorithm>
#include <initializer_list>

#if ASC_HAVE_OPENBLAS
// The few entry points that we use, as the scipy-openblas32 wheels export them.
extern "C" {
void scipy_cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a, int lda,
                       const float* b, int ldb, float beta, float* c, int ldc);
void scipy_cblas_dgemm(int order, int trans_a, int trans_b, int m, int n, int k, double alpha, const double* a, int lda,
                       const double* b, int ldb, double beta, double* c, int ldc);
void scipy_openblas_set_num_threads(int threads);
}
#endif

namespace asc::cpu {
namespace {

template <typename T>
void scale(int64_t m, int64_t n, T beta, T* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i) {
    T* row = c + i * ldc;
    if (beta == 0)
      std::fill(row, row + n, T{0});
    else if (beta != 1)
      for (int64_t j = 0; j < n; ++j) row[j] *= beta;
  }
}

// Blocks of k and n keep the rows of b that are in use inside the first-level cache.
template <typename T>
void blocked_gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda,
                  const T* b, int64_t ldb, T beta, T* c, int64_t ldc) {
  constexpr int64_t kBlockK = 32, kBlockN = 128;
  scale(m, n, beta, c, ldc);
  T panel[kBlockK * kBlockN];
  for (int64_t j0 = 0; j0 < n; j0 += kBlockN) {
    const int64_t width = std::min(kBlockN, n - j0);
    for (int64_t p0 = 0; p0 < k; p0 += kBlockK) {
      const int64_t depth = std::min(kBlockK, k - p0);
      for (int64_t p = 0; p < depth; ++p)
        for (int64_t j = 0; j < width; ++j)
          panel[p * kBlockN + j] = trans_b ? b[(j0 + j) * ldb + p0 + p] : b[(p0 + p) * ldb + j0 + j];
      for (int64_t i = 0; i < m; ++i) {
        T* row = c + i * ldc + j0;
        for (int64_t p = 0; p < depth; ++p) {
          const T x = alpha * (trans_a ? a[(p0 + p) * lda + i] : a[i * lda + p0 + p]);
          const T* line = panel + p * kBlockN;
          for (int64_t j = 0; j < width; ++j) row[j] += x * line[j];
        }
      }
    }
  }
}

#if ASC_HAVE_OPENBLAS
constexpr int kRowMajor = 101, kNoTrans = 111, kTrans = 112;
constexpr int64_t kMaxExtent = 0x7FFFFFFF;

bool fits_openblas(std::initializer_list<int64_t> extents) {
  // Several executors call it side by side, so it must not start threads of its own.
  static const bool is_ready = (scipy_openblas_set_num_threads(1), true);
  return is_ready && std::max(extents) <= kMaxExtent;
}

void call_openblas(int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a, int lda, const float* b,
                   int ldb, float beta, float* c, int ldc) {
  scipy_cblas_sgemm(kRowMajor, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
void call_openblas(int trans_a, int trans_b, int m, int n, int k, double alpha, const double* a, int lda,
                   const double* b, int ldb, double beta, double* c, int ldc) {
  scipy_cblas_dgemm(kRowMajor, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
#endif

template <typename T>
void dispatch(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, T alpha, const T* a, int64_t lda, const T* b,
              int64_t ldb, T beta, T* c, int64_t ldc) {
  if (m == 0 || n == 0) return;
  if (k == 0 || alpha == 0) return scale(m, n, beta, c, ldc);
#if ASC_HAVE_OPENBLAS
  if (fits_openblas({m, n, k, lda, ldb, ldc}))
    return call_openblas(trans_a ? kTrans : kNoTrans, trans_b ? kTrans : kNoTrans, static_cast<int>(m),
                         static_cast<int>(n), static_cast<int>(k), alpha, a, static_cast<int>(lda), b,
                         static_cast<int>(ldb), beta, c, static_cast<int>(ldc));
#endif
  blocked_gemm(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

}  // namespace

void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
          const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  dispatch(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void gemm(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, double alpha, const double* a, int64_t lda,
          const double* b, int64_t ldb, double beta, double* c, int64_t ldc) {
  dispatch(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

const char* blas_name() {
#if ASC_HAVE_OPENBLAS
  return "openblas";
#else
  return "blocked";
#endif
}

}  // namespace asc::cpu
