// What the kernels of LSTM and GRU share.
#pragma once

#include <cstdint>

#include "device/task.h"

namespace asc::cpu {

// to[columns, rows] = from[rows, columns] transposed.
void transpose(const float* from, int64_t rows, int64_t columns, float* to);

// c[m, n] = a[m, k]·b[k, n] + add, where add has rows `add_row` apart (0: one row for all).
void product_plus(int64_t m, int64_t n, int64_t k, const float* a, const float* b, const float* add, int64_t add_row,
                  float* c);

// Whether all lengths (null: none are given) lie in [0, steps].
Status check_lengths(int64_t batch, int64_t steps, const int32_t* lengths, Worker& worker);

}  // namespace asc::cpu
