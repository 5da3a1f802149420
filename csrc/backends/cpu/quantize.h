// The kernels of quantised values that have files of their own.
#pragma once

#include <cstdint>

#include "backends/cpu/tiling_base.h"

namespace asc::cpu {

// y = x rounded to the 256 values that DynamicQuantizeLinear would have chosen for it, as floats.
void round_to_bytes(const float* x, int64_t n, float* y);

void register_matmul_integer(KernelRegistry& registry);

}  // namespace asc::cpu
