#include "backends/cpu/panel_gemm.h"

#include <algorithm>

#include "backends/cpu/transpose_4x4.h"
#include "base/hash.h"

namespace asc::cpu {
namespace {

// A panel of a matrix whose columns are contiguous, in squares of a cache line: strides of powers of two then evict
// nothing that is still to be used.
void pack_columns(const float* b, int64_t column_stride, int64_t k, int64_t width, float* to) {
  constexpr int64_t kBytes = sizeof(float), kSquare = 16;
  const int64_t whole_k = k & ~int64_t{3}, whole_width = width & ~int64_t{3};
  for (int64_t j0 = 0; j0 < whole_width; j0 += kSquare)
    for (int64_t p0 = 0; p0 < whole_k; p0 += kSquare)
      for (int64_t p = p0; p < std::min(p0 + kSquare, whole_k); p += 4)
        for (int64_t j = j0; j < std::min(j0 + kSquare, whole_width); j += 4)
          transpose_4x4(reinterpret_cast<const char*>(b + j * column_stride + p), column_stride * kBytes,
                        reinterpret_cast<char*>(to + p * width + j), width * kBytes);
  for (int64_t j = 0; j < width; ++j)
    for (int64_t p = j < whole_width ? whole_k : 0; p < k; ++p) to[p * width + j] = b[j * column_stride + p];
}

}  // namespace

void pack_panels(const float* b, int64_t row_stride, int64_t column_stride, int64_t k, int64_t n, float* to,
                 int64_t panel) {
  if (row_stride == 1) {
    for (int64_t begin = 0; begin < n; begin += panel) {
      const int64_t width = std::min(panel, n - begin);
      pack_columns(b + begin * column_stride, column_stride, k, width, to);
      to += k * width;
    }
    return;
  }
  for (int64_t begin = 0; begin < n; begin += panel) {
    const int64_t end = std::min(begin + panel, n);
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = begin; j < end; ++j) *to++ = b[p * row_stride + j * column_stride];
  }
}

void multiply_panels(const SmallGemmArgs& args, bool backwards) {
  const auto rows = small_gemm().rows;
  SmallGemmArgs panel = args;
  const int64_t count = (args.n + kPanelColumns - 1) / kPanelColumns;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = (backwards ? count - 1 - i : i) * kPanelColumns;
    panel.n = panel.ldb = std::min(kPanelColumns, args.n - begin);
    panel.b = args.b + args.k * begin;
    panel.c = args.c + begin;
    panel.add = args.add ? args.add + begin : nullptr;
    rows(panel);
  }
}

// Measured against OpenBLAS and oneDNN.
bool prefers_panels(int64_t m) {
  switch (current_isa()) {
    case Isa::kV4:
      return true;
    case Isa::kV3:
      return m <= 8;
    default:
      return m <= 4;
  }
}

uint64_t panel_layout(int64_t k, int64_t n, bool transposed) {
  const uint64_t words[] = {0x70616E656C73, static_cast<uint64_t>(k), static_cast<uint64_t>(n), transposed};
  return hash_words(words, 4) | 1;
}

}  // namespace asc::cpu
