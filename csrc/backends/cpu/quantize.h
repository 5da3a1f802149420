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

// The integer behind a pointer to a zero point; 0 where it is absent.
int32_t zero_at(const void* zero, DType type);

void register_byte_pool(KernelRegistry& registry);
void register_quantized_conv(KernelRegistry& registry);
void register_quantized_matmul(KernelRegistry& registry);
void register_matmul_integer(KernelRegistry& registry);
void register_quantized_lstm(KernelRegistry& registry);

}  // namespace asc::cpu
