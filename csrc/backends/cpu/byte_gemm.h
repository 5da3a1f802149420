// Products of bytes, exact in 32 bits (sums wrap around), in plain vector code: one version per instruction set, with
// the dot-product instructions of AVX512-VNNI and AVX-VNNI where the CPU has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace asc::cpu {

// A packed right-hand matrix: panels of up to 64 columns; in a panel, groups of four rows, and of each group the four
// bytes of every column. Rows are padded to a multiple of four and columns to one of sixteen, with zeros.
struct ByteMatrix {
  static constexpr int64_t kPanelColumns = 64, kColumnUnit = 16, kRowUnit = 4;

  int64_t k = 0, n = 0;
  const int8_t* bytes = nullptr;
  const int32_t* sums = nullptr;   // of each column, less the zero point
  const int32_t* zeros = nullptr;  // zero point of each column

  static int64_t padded_columns(int64_t n) { return (n + kColumnUnit - 1) / kColumnUnit * kColumnUnit; }
  static size_t packed_bytes(int64_t k, int64_t n);  // a multiple of 64
  // The view of what pack() wrote.
  static ByteMatrix of(const void* packed, int64_t k, int64_t n);
  static bool is_whole(int64_t k, int64_t n) { return k % kRowUnit == 0 && n % kPanelColumns == 0; }  // no padding
  bool has_zeros() const { return zeros[0] != 0; }
  const int32_t* column_zeros() const { return zeros + kColumnUnit; }
};

// Zero points of a row-major matrix: one number (step 0), or one for each row or column; null: none.
struct ZeroPoints {
  const void* values = nullptr;
  int step = 0;
};

// b[k, n], row-major, int8 or uint8.
void pack_bytes(const void* b, bool is_signed, ZeroPoints zeros, int64_t k, int64_t n, void* packed);

// c[m, n] = (a - zero points)·(b - zero points).
struct ByteGemmArgs {
  int64_t m = 0;
  const uint8_t* a = nullptr;  // row-major [m, k]
  bool a_is_signed = false;
  const int32_t* a_zeros = nullptr;   // of the rows of a, as unsigned bytes: 128 more where a is signed
  int a_zero_step = 0;                // 0: one for all rows
  const int32_t* row_sums = nullptr;  // of a, as unsigned bytes; read where b has zero points
  ByteMatrix b;
  // Of the result. The begin is a multiple of kColumnUnit, the end one of kPanelColumns; INT64_MAX: all others.
  int64_t column_begin = 0, column_end = INT64_MAX;
  bool backwards = false;  // from the last panel to the first
  int32_t* c = nullptr;
  // scaled: y = c * (a_scale * scales[column]) + add, where add has rows `add_row` apart.
  float* y = nullptr;
  float a_scale = 1;
  const float* scales = nullptr;  // padded_columns(n) of them
  const float* add = nullptr;
  int64_t add_row = 0;
};

struct ByteGemm {
  const char* name;  // of the implementation
  void (*sums)(const ByteGemmArgs& args);
  void (*scaled)(const ByteGemmArgs& args);
};

// The quickest version that current_isa() and the CPU allow.
const ByteGemm& byte_gemm();
// All versions that this CPU runs, for tests.
std::vector<const ByteGemm*> runnable_byte_gemms();

// The sums of m rows of k bytes each, signed ones as 128 more.
void sum_byte_rows(const uint8_t* a, bool is_signed, int64_t m, int64_t k, int32_t* sums);

}  // namespace asc::cpu
