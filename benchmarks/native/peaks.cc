// What the core itself can do, without anything around it: products from registers, and reading a buffer again and
// again. All functions do their work `times` over, and return how much that was; the caller times them.
#include <cstdint>
#include <cstring>

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#include <immintrin.h>
#endif

namespace {

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
constexpr int kSums = 12;  // hide the latency of a sum, and fit the registers
typedef float Floats __attribute__((vector_size(kBytes)));
typedef int32_t Ints __attribute__((vector_size(kBytes)));

volatile int32_t sink;  // so that nothing is left out

// Calls add(sum) on every sum, `times` over.
template <typename V, typename Add>
void repeat(long times, const Add& add) {
  V sums[kSums] = {};
#pragma GCC unroll 12
  for (int j = 0; j < kSums; ++j) asm volatile("" : "+v"(sums[j]));  // not known to be equal
  for (long i = 0; i < times; ++i) {
    asm volatile("");
#pragma GCC unroll 12
    for (int j = 0; j < kSums; ++j) add(sums[j]);
  }
  V total = sums[0];
  for (int j = 1; j < kSums; ++j) total += sums[j];
  sink = static_cast<int32_t>(total[0]);
}

#if defined(__AVX512VNNI__)
inline void add_bytes(Ints& sum, const Ints& a) {
  sum = (Ints)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)a, (__m512i)a);
}
#elif defined(__AVXVNNI__)
inline void add_bytes(Ints& sum, const Ints& a) {
  sum = (Ints)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)a, (__m256i)a);
}
#endif

}  // namespace

extern "C" {

// Operations: two for each product that is added.
double peaks_float_products(long times) {
  Floats a = Floats{} + 0.5f;
  asm volatile("" : "+v"(a));
  repeat<Floats>(times, [a](Floats& sum) __attribute__((always_inline)) { sum = sum * a + a; });
  return 2.0 * kBytes / 4 * kSums * static_cast<double>(times);
}

// Likewise of bytes; 0 where the CPU has no instruction for it.
double peaks_byte_products([[maybe_unused]] long times) {
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
  Ints a = Ints{} + 0x01020304;
  asm volatile("" : "+v"(a));
  repeat<Ints>(times, [a](Ints& sum) __attribute__((always_inline)) { add_bytes(sum, a); });
  return 2.0 * kBytes * kSums * static_cast<double>(times);
#else
  return 0;
#endif
}

// Reads `bytes`, a multiple of 512, to and fro: what was read last is still in the first-level cache.
double peaks_read(const char* data, long bytes, long times) {
  constexpr int kLoads = 8;
  constexpr long kStep = kLoads * kBytes;
  Ints sums[kLoads] = {};
  for (long t = 0; t < times; ++t) {
    const long step = t % 2 ? -kStep : kStep;
    const char* from = t % 2 ? data + bytes - kStep : data;
    for (long i = 0; i < bytes; i += kStep, from += step) {
#pragma GCC unroll 8
      for (int j = 0; j < kLoads; ++j) {
        Ints v;
        std::memcpy(&v, from + j * kBytes, kBytes);
        sums[j] ^= v;
      }
    }
  }
  Ints total = sums[0];
  for (int j = 1; j < kLoads; ++j) total ^= sums[j];
  sink = total[0];
  return static_cast<double>(bytes) * static_cast<double>(times);
}
}
