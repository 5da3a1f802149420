// NumPy broadcasting, prepared at tiling time: dimensions that all operands step through alike are merged, so that a
// launch is a few calls of a row function. All tensors are contiguous, hence inside a row an operand either advances
// with the output or stands still.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/shape.h"

namespace asc {

// Merged dimensions of the output, outermost first, with the strides of `count` operands (elements; 0: repeated).
// `strides` holds kMaxRank numbers per operand. Returns the merged rank; 0 for one element. `output` is the broadcast
// of `inputs`, and is not empty.
int merge_dims(const Shape& output, const Shape* const* inputs, int count, int64_t* dims, int64_t* strides);

template <int kOperands>
struct Broadcast {
  size_t row_size = 0;                // elements of the output in one row
  size_t row_count = 0;               // 0 where the output is empty
  bool is_repeated[kOperands] = {};   // operand i stands still inside a row
  int outer_rank = 0;                 // dimensions around a row
  int64_t outer_dims[kMaxRank] = {};  // outermost first
  int64_t outer_strides[kOperands][kMaxRank] = {};

  Broadcast(const Shape& output, const Shape* const* inputs);

  // Calls row(offsets, first) for each row: operand offsets and the first element of the output; stops when it returns
  // false, and then returns false too.
  template <typename Row>
  bool for_each_row(const Row& row) const {
    int64_t offsets[kOperands] = {}, position[kMaxRank] = {};
    for (size_t r = 0; r < row_count; ++r) {
      if (!row(offsets, r * row_size)) return false;
      for (int d = outer_rank - 1; d >= 0; --d) {
        const bool wraps = ++position[d] == outer_dims[d];
        const int64_t steps = wraps ? 1 - outer_dims[d] : 1;
        for (int i = 0; i < kOperands; ++i) offsets[i] += steps * outer_strides[i][d];
        if (!wraps) break;
        position[d] = 0;
      }
    }
    return true;
  }
};

template <int kOperands>
Broadcast<kOperands>::Broadcast(const Shape& output, const Shape* const* inputs) {
  if (output.num_elements() == 0) return;
  int64_t strides[kOperands * kMaxRank];
  const int rank = merge_dims(output, inputs, kOperands, outer_dims, strides);
  row_size = row_count = 1;
  if (rank == 0) return;
  outer_rank = rank - 1;
  row_size = static_cast<size_t>(outer_dims[outer_rank]);
  for (int d = 0; d < outer_rank; ++d) row_count *= static_cast<size_t>(outer_dims[d]);
  for (int i = 0; i < kOperands; ++i) {
    for (int d = 0; d < outer_rank; ++d) outer_strides[i][d] = strides[i * kMaxRank + d];
    is_repeated[i] = strides[i * kMaxRank + outer_rank] == 0;
  }
}

}  // namespace asc
