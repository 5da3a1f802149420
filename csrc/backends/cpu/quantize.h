// The kernels of quantised values that have files of their own.
#pragma once

#include <cstdint>

#include "backends/cpu/tiling_base.h"

namespace asc::cpu {

struct ByteScale {
  float scale;
  uint8_t zero;
};

// y = x as DynamicQuantizeLinear stores it.
ByteScale quantize_bytes(const float* x, int64_t n, uint8_t* y);

void register_matmul_integer(KernelRegistry& registry);
void register_quantized_lstm(KernelRegistry& registry);

}  // namespace asc::cpu
