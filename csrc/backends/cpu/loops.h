// Loop nests over one input and one output, as data.
#pragma once

#include <cstdint>

#include "base/shape.h"

namespace asc::cpu {

constexpr int kMaxLoops = 2 * kMaxRank;

struct Loop {
  int64_t count, in_stride, out_stride;  // strides in bytes; may be negative or 0
};

// Calls inner(in, out) for every position of `rank` loops, the first one outermost. Every count is at least 1.
template <typename In, typename Out, typename Inner>
inline void walk(const Loop* loops, int rank, In* in, Out* out, Inner inner) {
  static_assert(sizeof(In) == 1 && sizeof(Out) == 1, "strides are in bytes");
  int64_t index[kMaxLoops];
  for (int d = 0; d < rank; ++d) index[d] = 0;
  for (;;) {
    inner(in, out);
    int d = rank - 1;
    for (; d >= 0; --d) {
      in += loops[d].in_stride;
      out += loops[d].out_stride;
      if (++index[d] < loops[d].count) break;
      in -= loops[d].in_stride * loops[d].count;
      out -= loops[d].out_stride * loops[d].count;
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

}  // namespace asc::cpu
