#include "backends/cpu/byte_gemm.h"

#if defined(__x86_64__) && !defined(__clang__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "backends/cpu/isa.h"

// The code below exists once per instruction set. Standard headers stay outside of the target pragmas, so that no
// inline function of theirs is compiled for a set that the CPU may lack.
namespace asc::cpu {
namespace {

namespace base {
#define ASC_BYTE_LANES 4
#define ASC_BYTE_VECS 4
#if defined(__x86_64__) && !defined(__clang__)
#define ASC_BYTE_PAIRS(x, y) _mm_madd_epi16((__m128i)(x), (__m128i)(y))
#else
template <typename V>
V add_pairs(V x, V y) {
  int32_t sums[sizeof(V) / 4];
  for (size_t i = 0; i < sizeof(V) / 4; ++i)
    sums[i] = int32_t{x[2 * i]} * y[2 * i] + int32_t{x[2 * i + 1]} * y[2 * i + 1];
  V out;
  std::memcpy(&out, sums, sizeof out);
  return out;
}
#define ASC_BYTE_PAIRS(x, y) add_pairs(x, y)
#endif
#include "backends/cpu/byte_gemm.inc"
#undef ASC_BYTE_LANES
#undef ASC_BYTE_VECS
#undef ASC_BYTE_PAIRS
constexpr ByteGemm kTable = {"vector:bytes", multiply<ToSums>, multiply<ToScaled>};
}  // namespace base

#if defined(__x86_64__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace v3 {
#define ASC_BYTE_LANES 8
#define ASC_BYTE_VECS 2
#define ASC_BYTE_PAIRS(x, y) _mm256_madd_epi16((__m256i)(x), (__m256i)(y))
#include "backends/cpu/byte_gemm.inc"
#undef ASC_BYTE_PAIRS
constexpr ByteGemm kTable = {"vector:bytes", multiply<ToSums>, multiply<ToScaled>};
}  // namespace v3
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3,avxvnni")
namespace v3_vnni {
#define ASC_BYTE_DOT(sums, a, b) _mm256_dpbusd_avx_epi32((__m256i)(sums), (__m256i)(a), (__m256i)(b))
#include "backends/cpu/byte_gemm.inc"
#undef ASC_BYTE_LANES
#undef ASC_BYTE_VECS
#undef ASC_BYTE_DOT
constexpr ByteGemm kTable = {"vector:vnni", multiply<ToSums>, multiply<ToScaled>};
}  // namespace v3_vnni
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")
namespace v4 {
#define ASC_BYTE_LANES 16
#define ASC_BYTE_VECS 4
#define ASC_BYTE_PAIRS(x, y) _mm512_madd_epi16((__m512i)(x), (__m512i)(y))
#include "backends/cpu/byte_gemm.inc"
#undef ASC_BYTE_PAIRS
constexpr ByteGemm kTable = {"vector:bytes", multiply<ToSums>, multiply<ToScaled>};
}  // namespace v4
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,avx512vnni,prefer-vector-width=512")
namespace v4_vnni {
#define ASC_BYTE_DOT(sums, a, b) _mm512_dpbusd_epi32((__m512i)(sums), (__m512i)(a), (__m512i)(b))
#include "backends/cpu/byte_gemm.inc"
#undef ASC_BYTE_LANES
#undef ASC_BYTE_VECS
#undef ASC_BYTE_DOT
constexpr ByteGemm kTable = {"vector:vnni", multiply<ToSums>, multiply<ToScaled>};
}  // namespace v4_vnni
#pragma GCC pop_options
#endif

// The versions that `isa` allows and the CPU runs, the quickest one last.
std::vector<const ByteGemm*> runnable([[maybe_unused]] Isa isa) {
  std::vector<const ByteGemm*> tables = {&base::kTable};
#if defined(__x86_64__) && !defined(__clang__)
  if (isa >= Isa::kV3) {
    tables.push_back(&v3::kTable);
    if (__builtin_cpu_supports("avxvnni")) tables.push_back(&v3_vnni::kTable);
  }
  if (isa >= Isa::kV4) {
    tables.push_back(&v4::kTable);
    if (__builtin_cpu_supports("avx512vnni")) tables.push_back(&v4_vnni::kTable);
  }
#endif
  return tables;
}

// Four rows of b (fewer at its end) as one group of a panel.
template <typename Q>
void pack_group(const Q* b, int64_t rows, int64_t n, int64_t columns, uint32_t* to, uint32_t* sums) {
  constexpr uint32_t kFlip = std::is_signed_v<Q> ? 0 : 0x80;  // unsigned bytes, into the range of signed ones
  for (int64_t i = 0; i < rows; ++i, b += n) {
#pragma omp simd
    for (int64_t j = 0; j < columns; ++j) {
      const auto byte = static_cast<uint8_t>(static_cast<uint8_t>(b[j]) ^ kFlip);
      to[j] |= static_cast<uint32_t>(byte) << (8 * i);
      sums[j] += static_cast<uint32_t>(static_cast<int8_t>(byte));
    }
  }
}

template <typename Q>
void pack_as(const Q* b, const Q* zeros, int zero_step, int64_t k, int64_t n, void* packed) {
  const ByteMatrix m = ByteMatrix::of(packed, k, n);
  std::memset(packed, 0, ByteMatrix::packed_bytes(k, n));
  auto* to = static_cast<uint32_t*>(packed);
  auto* sums = reinterpret_cast<uint32_t*>(const_cast<int32_t*>(m.sums));
  const int64_t padded = ByteMatrix::padded_columns(n);
  for (int64_t begin = 0; begin < padded; begin += ByteMatrix::kPanelColumns) {
    const int64_t width = std::min(ByteMatrix::kPanelColumns, padded - begin), used = std::min(width, n - begin);
    for (int64_t p = 0; p < k; p += 4, to += width)
      pack_group(b + p * n + begin, std::min<int64_t>(4, k - p), n, used, to, sums + begin);
  }
  auto* column_zeros = const_cast<int32_t*>(m.column_zeros());
  for (int64_t j = 0; j < n; ++j) {
    const int zero = (zeros ? int{zeros[j * zero_step]} : 0) - (std::is_signed_v<Q> ? 0 : 128);
    column_zeros[j] = zero;
    const_cast<int32_t*>(m.zeros)[0] |= zero;
    sums[j] -= static_cast<uint32_t>(k) * static_cast<uint32_t>(zero);
  }
}

int64_t padded_rows(int64_t k) { return (k + ByteMatrix::kRowUnit - 1) / ByteMatrix::kRowUnit * ByteMatrix::kRowUnit; }

}  // namespace

size_t ByteMatrix::packed_bytes(int64_t k, int64_t n) {
  const int64_t columns = padded_columns(n);
  return static_cast<size_t>(padded_rows(k) * columns + (2 * columns + kColumnUnit) * 4);
}

ByteMatrix ByteMatrix::of(const void* packed, int64_t k, int64_t n) {
  ByteMatrix m;
  m.k = k, m.n = n;
  m.bytes = static_cast<const int8_t*>(packed);
  m.sums = reinterpret_cast<const int32_t*>(m.bytes + padded_rows(k) * padded_columns(n));
  m.zeros = m.sums + padded_columns(n);
  return m;
}

void pack_bytes(const void* b, bool is_signed, ZeroPoints zeros, int64_t k, int64_t n, void* packed) {
  if (is_signed)
    pack_as(static_cast<const int8_t*>(b), static_cast<const int8_t*>(zeros.values), zeros.step, k, n, packed);
  else
    pack_as(static_cast<const uint8_t*>(b), static_cast<const uint8_t*>(zeros.values), zeros.step, k, n, packed);
}

const ByteGemm& byte_gemm() {
  static const ByteGemm& table = *runnable(current_isa()).back();
  return table;
}

std::vector<const ByteGemm*> runnable_byte_gemms() { return runnable(detect_isa()); }

void sum_byte_rows(const uint8_t* a, bool is_signed, int64_t m, int64_t k, int32_t* sums) {
  for (int64_t i = 0; i < m; ++i, a += k) {
    uint32_t sum = 0;
    if (is_signed)
      for (int64_t p = 0; p < k; ++p) sum += static_cast<uint8_t>(a[p] ^ 0x80);
    else
      for (int64_t p = 0; p < k; ++p) sum += a[p];
    sums[i] = static_cast<int32_t>(sum);
  }
}

}  // namespace asc::cpu
