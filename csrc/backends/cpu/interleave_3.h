// Three planes of elements of 4 bytes or 1, and the pixels that they make, as images come and go.
#pragma once

#include "backends/cpu/transpose_4x4.h"

namespace asc::cpu {

// out[i, c] = in[c, i] for `n` pixels; planes `stride` bytes apart, any alignment.
inline void interleave_3(const char* in, int64_t stride, char* out, int64_t n) {
  constexpr int64_t kSize = 4;
  int64_t i = 0;
  for (; i + 4 <= n; i += 4, out += 12 * kSize) {
    Lanes4 a, b, c;
    std::memcpy(&a, in + i * kSize, 16);
    std::memcpy(&b, in + i * kSize + stride, 16);
    std::memcpy(&c, in + i * kSize + 2 * stride, 16);
    const Lanes4 ab0 = __builtin_shuffle(a, b, Lanes4{0, 4, 1, 5}), bc1 = __builtin_shuffle(b, c, Lanes4{1, 5, 2, 6});
    const Lanes4 ab3 = __builtin_shuffle(a, b, Lanes4{3, 7, 3, 7});
    const Lanes4 first = __builtin_shuffle(ab0, c, Lanes4{0, 1, 4, 2});
    const Lanes4 second = __builtin_shuffle(bc1, a, Lanes4{0, 1, 6, 2});
    const Lanes4 third = __builtin_shuffle(c, ab3, Lanes4{2, 4, 5, 3});
    std::memcpy(out, &first, 16);
    std::memcpy(out + 16, &second, 16);
    std::memcpy(out + 32, &third, 16);
  }
  for (; i < n; ++i, out += 3 * kSize)
    for (int64_t c = 0; c < 3; ++c) std::memcpy(out + c * kSize, in + i * kSize + c * stride, kSize);
}

// The same for bytes: pixels of 4 bytes, two of which then close up to 6.
inline void interleave_3_bytes(const char* in, int64_t stride, char* out, int64_t n) {
  typedef uint8_t Bytes __attribute__((vector_size(16)));
  typedef uint64_t Pairs __attribute__((vector_size(16)));
  const Bytes low = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23};
  const Bytes high = {8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  typedef uint16_t Shorts __attribute__((vector_size(16)));
  const Shorts low_pairs = {0, 8, 1, 9, 2, 10, 3, 11}, high_pairs = {4, 12, 5, 13, 6, 14, 7, 15};
  int64_t i = 0;
  for (; i + 18 <= n; i += 16, out += 48) {  // the last pair writes two bytes of the pixel behind it
    Bytes a, b, c;
    std::memcpy(&a, in + i, 16);
    std::memcpy(&b, in + i + stride, 16);
    std::memcpy(&c, in + i + 2 * stride, 16);
    const auto ab_low = reinterpret_cast<Shorts>(__builtin_shuffle(a, b, low));
    const auto ab_high = reinterpret_cast<Shorts>(__builtin_shuffle(a, b, high));
    const auto c_low = reinterpret_cast<Shorts>(__builtin_shuffle(c, Bytes{}, low));
    const auto c_high = reinterpret_cast<Shorts>(__builtin_shuffle(c, Bytes{}, high));
    const Shorts pixels[] = {__builtin_shuffle(ab_low, c_low, low_pairs), __builtin_shuffle(ab_low, c_low, high_pairs),
                             __builtin_shuffle(ab_high, c_high, low_pairs),
                             __builtin_shuffle(ab_high, c_high, high_pairs)};
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const auto pairs = reinterpret_cast<Pairs>(pixels[k]);
      const Pairs closed = (pairs & 0xFFFFFF) | ((pairs >> 8) & 0xFFFFFF000000);
      const uint64_t first = closed[0], second = closed[1];
      std::memcpy(out + 12 * k, &first, 8);
      std::memcpy(out + 12 * k + 6, &second, 8);
    }
  }
  for (; i < n; ++i, out += 3)
    for (int64_t c = 0; c < 3; ++c) out[c] = in[i + c * stride];
}

// out[c, i] = in[i, c].
inline void split_3(const char* in, char* out, int64_t stride, int64_t n) {
  constexpr int64_t kSize = 4;
  int64_t i = 0;
  for (; i + 4 <= n; i += 4, in += 12 * kSize) {
    Lanes4 x, y, z;  // a0 b0 c0 a1, b1 c1 a2 b2, c2 a3 b3 c3
    std::memcpy(&x, in, 16);
    std::memcpy(&y, in + 16, 16);
    std::memcpy(&z, in + 32, 16);
    const Lanes4 yz = __builtin_shuffle(y, z, Lanes4{2, 5, 3, 6}), xy = __builtin_shuffle(x, y, Lanes4{1, 4, 2, 5});
    const Lanes4 a = __builtin_shuffle(x, yz, Lanes4{0, 3, 4, 5}), b = __builtin_shuffle(xy, yz, Lanes4{0, 1, 6, 7});
    const Lanes4 c = __builtin_shuffle(xy, z, Lanes4{2, 3, 4, 7});
    std::memcpy(out + i * kSize, &a, 16);
    std::memcpy(out + i * kSize + stride, &b, 16);
    std::memcpy(out + i * kSize + 2 * stride, &c, 16);
  }
  for (; i < n; ++i, in += 3 * kSize)
    for (int64_t c = 0; c < 3; ++c) std::memcpy(out + i * kSize + c * stride, in + c * kSize, kSize);
}

}  // namespace asc::cpu
