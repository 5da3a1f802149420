// 4x4 elements of 4 bytes: rows of the input become columns of the output.
#pragma once

#include <cstdint>
#include <cstring>

namespace asc::cpu {

typedef uint32_t Lanes4 __attribute__((vector_size(16)));

// Strides in bytes; any alignment.
inline void transpose_4x4(const char* in, int64_t in_stride, char* out, int64_t out_stride) {
  Lanes4 a, b, c, d;
  std::memcpy(&a, in, 16);
  std::memcpy(&b, in + in_stride, 16);
  std::memcpy(&c, in + 2 * in_stride, 16);
  std::memcpy(&d, in + 3 * in_stride, 16);
  const Lanes4 low = {0, 4, 1, 5}, high = {2, 6, 3, 7}, first = {0, 1, 4, 5}, second = {2, 3, 6, 7};
  const Lanes4 ab0 = __builtin_shuffle(a, b, low), ab1 = __builtin_shuffle(a, b, high);
  const Lanes4 cd0 = __builtin_shuffle(c, d, low), cd1 = __builtin_shuffle(c, d, high);
  const Lanes4 r0 = __builtin_shuffle(ab0, cd0, first), r1 = __builtin_shuffle(ab0, cd0, second);
  const Lanes4 r2 = __builtin_shuffle(ab1, cd1, first), r3 = __builtin_shuffle(ab1, cd1, second);
  std::memcpy(out, &r0, 16);
  std::memcpy(out + out_stride, &r1, 16);
  std::memcpy(out + 2 * out_stride, &r2, 16);
  std::memcpy(out + 3 * out_stride, &r3, 16);
}

// to[j, i] = from[i, j], with `rows` rows in `from` that are `width` apart, and `stride` apart in `to`.
inline void transpose_rows(const float* from, int64_t width, int64_t rows, int64_t columns, float* to, int64_t stride) {
  constexpr int64_t kBytes = sizeof(float);
  const int64_t whole_rows = rows & ~int64_t{3}, whole_columns = columns & ~int64_t{3};
  for (int64_t i = 0; i < whole_rows; i += 4)
    for (int64_t j = 0; j < whole_columns; j += 4)
      transpose_4x4(reinterpret_cast<const char*>(from + i * width + j), width * kBytes,
                    reinterpret_cast<char*>(to + j * stride + i), stride * kBytes);
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = j < whole_columns ? whole_rows : 0; i < rows; ++i) to[j * stride + i] = from[i * width + j];
}

}  // namespace asc::cpu
