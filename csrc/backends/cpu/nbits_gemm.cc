#include "backends/cpu/nbits_gemm.h"

#include <algorithm>
#include <cstring>

// The code below exists once per instruction set. Standard headers stay outside of the target pragmas, so that no
// inline function of theirs is compiled for a set that the CPU may lack.
namespace asc::cpu {
namespace {

namespace base {
#define ASC_NBITS_LANES 4
#define ASC_NBITS_VECS 4
#include "backends/cpu/nbits_gemm.inc"
#undef ASC_NBITS_LANES
#undef ASC_NBITS_VECS
constexpr NBitsGemm kTable = {"vector:bits", wants_sums, multiply};
}  // namespace base

#if defined(__x86_64__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace v3 {
#define ASC_NBITS_LANES 8
#define ASC_NBITS_VECS 2
#include "backends/cpu/nbits_gemm.inc"
#undef ASC_NBITS_LANES
#undef ASC_NBITS_VECS
constexpr NBitsGemm kTable = {"vector:bits", wants_sums, multiply};
}  // namespace v3
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")
namespace v4 {
#define ASC_NBITS_LANES 16
#define ASC_NBITS_VECS 4
#define ASC_NBITS_LOOKUP(words, table) __builtin_shuffle(table, (Ints)(words))
#include "backends/cpu/nbits_gemm.inc"
#undef ASC_NBITS_LANES
#undef ASC_NBITS_VECS
#undef ASC_NBITS_LOOKUP
constexpr NBitsGemm kTable = {"vector:bits", wants_sums, multiply};
}  // namespace v4
#pragma GCC pop_options
#endif

constexpr const NBitsGemm* kVersions[kIsaCount] = {
    &base::kTable,
#if defined(__x86_64__) && !defined(__clang__)
    &v3::kTable,
    &v4::kTable,
#endif
};

int64_t words_of_column(const NBitsWeights& s) { return (s.k * s.bits + 31) / 32; }

// from[n][stride] to panels of rows of the first `rows` entries; padding columns get `fill`.
template <typename T, typename At>
void pack_rows(const NBitsWeights& s, int64_t rows, T* to, T fill, At at) {
  const int64_t padded = NBitsMatrix::padded_columns(s.n);
  for (int64_t begin = 0; begin < padded; begin += NBitsMatrix::kPanelColumns) {
    const int64_t width = std::min(NBitsMatrix::kPanelColumns, padded - begin);
    for (int64_t j = 0; j < width; ++j)
      for (int64_t i = 0; i < rows; ++i) to[i * width + j] = begin + j < s.n ? at(begin + j, i) : fill;
    to += rows * width;
  }
}

}  // namespace

size_t NBitsMatrix::packed_bytes(const NBitsWeights& s, bool has_zeros) {
  return static_cast<size_t>(padded_columns(s.n) * (words_of_column(s) + (has_zeros ? 2 : 1) * s.blocks())) * 4;
}

NBitsMatrix NBitsMatrix::of(const void* packed, const NBitsWeights& s, bool has_zeros) {
  const int64_t padded = padded_columns(s.n);
  NBitsMatrix m;
  m.shape = s;
  m.words = static_cast<const uint32_t*>(packed);
  m.scales = reinterpret_cast<const float*>(m.words + padded * words_of_column(s));
  m.zeros = has_zeros ? m.scales + padded * s.blocks() : nullptr;
  return m;
}

void pack_nbits(const NBitsWeights& s, const uint8_t* codes, const float* scales, const void* zeros,
                bool zeros_are_codes, void* packed) {
  const NBitsMatrix m = NBitsMatrix::of(packed, s, zeros != nullptr);
  const int64_t blocks = s.blocks(), column_bytes = blocks * s.block_bytes();
  pack_rows(s, words_of_column(s), const_cast<uint32_t*>(m.words), uint32_t{0}, [&](int64_t column, int64_t i) {
    const uint8_t* from = codes + column * column_bytes + i * 4;
    return static_cast<uint32_t>(from[0]) | static_cast<uint32_t>(from[1]) << 8 | static_cast<uint32_t>(from[2]) << 16 |
           static_cast<uint32_t>(from[3]) << 24;
  });
  pack_rows(s, blocks, const_cast<float*>(m.scales), 0.0f,
            [&](int64_t column, int64_t i) { return scales[column * blocks + i]; });
  if (!zeros) return;
  pack_rows(s, blocks, const_cast<float*>(m.zeros), 0.0f, [&](int64_t column, int64_t i) {
    if (!zeros_are_codes) return static_cast<const float*>(zeros)[column * blocks + i];
    const uint8_t byte = static_cast<const uint8_t*>(zeros)[column * s.zero_bytes() + i * s.bits / 8];
    return static_cast<float>(s.bits == 8 ? byte : i % 2 ? byte >> 4 : byte & 15);
  });
}

const NBitsGemm* nbits_gemm_of(Isa isa) { return kVersions[static_cast<size_t>(isa)]; }

const NBitsGemm& nbits_gemm() {
  static const NBitsGemm& table = *nbits_gemm_of(current_isa());
  return table;
}

}  // namespace asc::cpu
