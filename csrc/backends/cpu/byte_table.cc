#include "backends/cpu/byte_table.h"

#if defined(__x86_64__) && !defined(__clang__)
#include <immintrin.h>
#endif

#include "backends/cpu/isa.h"

namespace asc::cpu {
namespace {

void look_up_plain(const uint8_t* table, const uint8_t* x, uint8_t* y, size_t n) {
  size_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (size_t k = 0; k < 8; ++k) y[i + k] = table[x[i + k]];
  for (; i < n; ++i) y[i] = table[x[i]];
}

#if defined(__x86_64__) && !defined(__clang__)
// The table in four registers: the upper bit of a byte chooses between two look-ups among 128.
__attribute__((target("arch=x86-64-v4,avx512vbmi"))) void look_up_vbmi(const uint8_t* table, const uint8_t* x,
                                                                       uint8_t* y, size_t n) {
  const __m512i a = _mm512_loadu_si512(table), b = _mm512_loadu_si512(table + 64);
  const __m512i c = _mm512_loadu_si512(table + 128), d = _mm512_loadu_si512(table + 192);
  for (size_t i = 0; i < n; i += 64) {
    const __mmask64 lanes = n - i >= 64 ? ~__mmask64{0} : (__mmask64{1} << (n - i)) - 1;
    const __m512i at = _mm512_maskz_loadu_epi8(lanes, x + i);
    const __m512i low = _mm512_permutex2var_epi8(a, at, b), high = _mm512_permutex2var_epi8(c, at, d);
    _mm512_mask_storeu_epi8(y + i, lanes, _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), low, high));
  }
}
#endif

}  // namespace

void look_up(const uint8_t* table, const uint8_t* x, uint8_t* y, size_t n) {
#if defined(__x86_64__) && !defined(__clang__)
  static const bool has_vbmi = current_isa() == Isa::kV4 && __builtin_cpu_supports("avx512vbmi");
  if (has_vbmi) return look_up_vbmi(table, x, y, n);
#endif
  look_up_plain(table, x, y, n);
}

}  // namespace asc::cpu
