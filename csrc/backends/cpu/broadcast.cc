#include "backends/cpu/broadcast.h"

namespace asc {
namespace {

// Elements between neighbours of `in` along dimension `d` of the output; 0 where they are the same element.
int64_t stride_along(const Shape& in, int d, int output_rank) {
  const int axis = d - (output_rank - in.rank());
  return axis < 0 || in[axis] == 1 ? 0 : in.span_of(axis + 1, in.rank());
}

}  // namespace

int merge_dims(const Shape& output, const Shape* const* inputs, int count, int64_t* dims, int64_t* strides) {
  // From the innermost dimension outwards, filling the arrays from their ends: `top` is the latest merged dimension.
  int top = kMaxRank;
  int64_t merged[kMaxRank];
  for (int d = output.rank() - 1; d >= 0; --d) {
    if (output[d] == 1) continue;
    bool merges = top < kMaxRank;
    for (int i = 0; merges && i < count; ++i)
      merges = stride_along(*inputs[i], d, output.rank()) == strides[i * kMaxRank + top] * merged[top];
    if (merges) {
      merged[top] *= output[d];
      continue;
    }
    merged[--top] = output[d];
    for (int i = 0; i < count; ++i) strides[i * kMaxRank + top] = stride_along(*inputs[i], d, output.rank());
  }
  const int rank = kMaxRank - top;
  for (int d = 0; d < rank; ++d) {
    dims[d] = merged[top + d];
    for (int i = 0; i < count; ++i) strides[i * kMaxRank + d] = strides[i * kMaxRank + top + d];
  }
  return rank;
}

}  // namespace asc
