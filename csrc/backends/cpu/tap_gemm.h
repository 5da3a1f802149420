// Float32 products for convolutions with few output positions: rows of the left-hand matrix are gathered from an image
// through offsets, and the right-hand matrix is packed. One version per instruction set.
#pragma once

#include <cstdint>

#include "backends/cpu/isa.h"

namespace asc::cpu {

// A panel of the packed matrix: `width` columns, one row behind the other.
struct TapPanel {
  static constexpr int64_t kColumns = 64, kUnit = 16;

  // The panels of n columns; columns that n lacks to a whole unit are packed as zeros.
  static int64_t count(int64_t n) { return (n + kColumns - 1) / kColumns; }
  static int64_t padded(int64_t n) { return (n + kUnit - 1) / kUnit * kUnit; }
  static int64_t width(int64_t n, int64_t panel) {
    const int64_t left = padded(n) - panel * kColumns;
    return left < kColumns ? left : kColumns;
  }
};

// c(i, j) += sum over p of x[a_rows[i] + offsets[p]] * b[p * width + j], c(i, j) = c[c_rows[i] * width + j].
struct TapGemmArgs {
  int64_t rows = 0, k = 0;
  int64_t width = 0;  // of the panel; a multiple of TapPanel::kUnit
  const float* x = nullptr;
  const int32_t* a_rows = nullptr;
  const int32_t* offsets = nullptr;
  const float* b = nullptr;
  float* c = nullptr;  // overlaps nothing
  const int32_t* c_rows = nullptr;
};

using TapGemm = void (*)(const TapGemmArgs& args);

// The version of current_isa(). Results depend on the values and the extents only.
TapGemm tap_gemm();
// One version, for tests; null where it was not compiled.
TapGemm tap_gemm_of(Isa isa);

}  // namespace asc::cpu
