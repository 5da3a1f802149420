// Access to rows in the type that arithmetic uses: float16 and bfloat16 are converted chunk by chunk to float32, all
// other types are used where they lie.
#pragma once

#include <cstdint>

#include "backends/cpu/vec_table.h"
#include "base/dtype.h"

namespace asc::cpu {

constexpr int64_t kRealChunk = 512;  // elements of the buffers on the stack

template <typename T>
struct PlainIo {
  using Element = T;
  using Value = T;
  static constexpr bool kConverts = false;
  static const T* load(const VecTable&, const T* x, T*, int64_t) { return x; }
  // Where results may be computed; store() brings them to y if they are not there yet.
  static T* target(T* y, T*) { return y; }
  static void store(const VecTable&, const T*, T*, int64_t) {}
};

using Float32Io = PlainIo<float>;

template <auto kWiden, auto kNarrow>
struct HalfIo {
  using Element = uint16_t;
  using Value = float;
  static constexpr bool kConverts = true;
  static const float* load(const VecTable& v, const uint16_t* x, float* buffer, int64_t n) {
    (v.*kWiden)(x, buffer, static_cast<size_t>(n));
    return buffer;
  }
  static float* target(uint16_t*, float* buffer) { return buffer; }
  static void store(const VecTable& v, const float* x, uint16_t* y, int64_t n) {
    (v.*kNarrow)(x, y, static_cast<size_t>(n));
  }
};

using Float16Io = HalfIo<&VecTable::float16_to_float32, &VecTable::float32_to_float16>;
using BFloat16Io = HalfIo<&VecTable::bfloat16_to_float32, &VecTable::float32_to_bfloat16>;

}  // namespace asc::cpu
