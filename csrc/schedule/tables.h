// What the tables of a tiling take, of sines or indices, where they are worth counting: the tiling cache bounds what it
// keeps, but whoever resolved or keeps a schedule holds its tilings too.
#pragma once

#include "kernel/kernel.h"

namespace asc {

constexpr size_t kLargeTilingBytes = size_t{256} << 10;  // smaller ones are shared, and less than what they compute

inline size_t table_bytes(const Tiling& tiling) {
  const size_t bytes = tiling.bytes();
  return bytes < kLargeTilingBytes ? 0 : bytes;
}

}  // namespace asc
