#include "backends/cpu/recurrent.h"

#include <algorithm>
#include <string>

#include "backends/cpu/blas.h"
#include "backends/cpu/small_gemm.h"

namespace asc::cpu {

void transpose(const float* from, int64_t rows, int64_t columns, float* to) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
}

void product_plus(int64_t m, int64_t n, int64_t k, const float* a, const float* b, const float* add, int64_t add_row,
                  float* c) {
  if (prefers_rows(m, n, k)) {
    SmallGemmArgs s;
    s.m = m, s.n = n, s.k = k;
    s.a = a, s.a_row = k;
    s.b = b, s.ldb = n;
    s.c = c, s.ldc = n;
    s.add = add, s.add_row = add_row;
    return small_gemm().rows(s);
  }
  for (int64_t i = 0; i < m; ++i) std::copy(add + i * add_row, add + i * add_row + n, c + i * n);
  gemm(false, false, m, n, k, 1.0f, a, k, b, n, 1.0f, c, n);
}

Status check_lengths(int64_t batch, int64_t steps, const int32_t* lengths, Worker& worker) {
  for (int64_t b = 0; lengths && b < batch; ++b)
    if (lengths[b] < 0 || lengths[b] > steps)
      return worker.fail(Status::kInvalidValue, "sequence_lens holds " + std::to_string(lengths[b]) + " at position " +
                                                    std::to_string(b) + "; expected 0 to " + std::to_string(steps));
  return Status::kOk;
}

}  // namespace asc::cpu
