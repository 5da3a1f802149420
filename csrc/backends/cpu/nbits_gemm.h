// Products with codes of 4 or 8 bits: float32 rows times weights that are turned into real numbers in registers, or,
// for many rows, a piece at a time in a small buffer. One version per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/isa.h"
#include "ops/matmul.h"

namespace asc::cpu {

// Packed weights: panels of up to 64 columns (of the result), a multiple of 16 each. A panel has, one behind the other,
// rows of words, each with the codes of one column for as many steps of k as 32 bits hold, lowest first. Scales and
// zero points lie likewise: panels of rows, one row for each block.
struct NBitsMatrix {
  static constexpr int64_t kPanelColumns = 64, kColumnUnit = 16;

  NBitsWeights shape;
  const uint32_t* words = nullptr;
  const float* scales = nullptr;
  const float* zeros = nullptr;  // null: the default for all

  static size_t packed_bytes(const NBitsWeights& shape, bool has_zeros);
  static NBitsMatrix of(const void* packed, const NBitsWeights& shape, bool has_zeros);
  static int64_t padded_columns(int64_t n) { return (n + kColumnUnit - 1) / kColumnUnit * kColumnUnit; }
  int64_t panels() const { return (shape.n + kPanelColumns - 1) / kPanelColumns; }
};

// `zeros`: null, codes (`zeros_are_codes`) or float32.
void pack_nbits(const NBitsWeights& shape, const uint8_t* codes, const float* scales, const void* zeros,
                bool zeros_are_codes, void* packed);

struct NBitsArgs {
  NBitsMatrix b;
  int64_t m = 0;
  const float* a = nullptr;     // [m, k], row-major
  const float* sums = nullptr;  // of a: [m, blocks]; read where wants_sums() says so
  const float* bias = nullptr;  // [n], or null
  float* c = nullptr;           // [m, n]
};

struct NBitsGemm {
  const char* name;
  // Whether multiply() reads the sums of a.
  bool (*wants_sums)(const NBitsMatrix& b);
  // c for the columns of one panel.
  void (*multiply)(const NBitsArgs& args, int64_t panel);
};

// The version of current_isa().
const NBitsGemm& nbits_gemm();
// One version, for tests; null where it was not compiled.
const NBitsGemm* nbits_gemm_of(Isa isa);

}  // namespace asc::cpu
