// 16x16 bytes: rows of the input become columns of the output.
#pragma once

#include <cstdint>
#include <cstring>

namespace asc::cpu {

typedef uint8_t Bytes16 __attribute__((vector_size(16)));

// Strides in bytes; any alignment. Each round interleaves row i with row i + 8; after four, rows are columns.
inline void transpose_16x16(const char* in, int64_t in_stride, char* out, int64_t out_stride) {
  const Bytes16 low = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23};
  const Bytes16 high = {8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  Bytes16 a[16], b[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) std::memcpy(&a[i], in + i * in_stride, 16);
#pragma GCC unroll 4
  for (int round = 0; round < 4; ++round) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      b[2 * i] = __builtin_shuffle(a[i], a[i + 8], low);
      b[2 * i + 1] = __builtin_shuffle(a[i], a[i + 8], high);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) a[i] = b[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) std::memcpy(out + i * out_stride, &a[i], 16);
}

}  // namespace asc::cpu
