#include "backends/cpu/panel_gemm.h"

#include <algorithm>

#include "base/hash.h"

namespace asc::cpu {

void pack_panels(const float* b, int64_t row_stride, int64_t column_stride, int64_t k, int64_t n, float* to) {
  for (int64_t begin = 0; begin < n; begin += kPanelColumns) {
    const int64_t end = std::min(begin + kPanelColumns, n);
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = begin; j < end; ++j) *to++ = b[p * row_stride + j * column_stride];
  }
}

void multiply_panels(const SmallGemmArgs& args) {
  const auto rows = small_gemm().rows;
  SmallGemmArgs panel = args;
  for (int64_t begin = 0; begin < args.n; begin += kPanelColumns) {
    panel.n = panel.ldb = std::min(kPanelColumns, args.n - begin);
    rows(panel);
    panel.b += args.k * panel.n;
    panel.c += panel.n;
    if (panel.add) panel.add += panel.n;
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
