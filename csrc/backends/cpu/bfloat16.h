// Products and convolutions with constant bfloat16 weights (ops/half.h).
#pragma once

#include "backends/cpu/tiling_base.h"

namespace asc::cpu {

// Whether the CPU multiplies bfloat16 itself, the instruction set in use allows it, and oneDNN is there and wanted.
bool multiplies_bfloat16(const TilingContext& ctx);

// y[i] = x[i] rounded, on up to `threads` threads.
void round_to_bfloat16(const float* x, uint16_t* y, int64_t n, int threads);

void register_bfloat16_products(KernelRegistry& registry);

}  // namespace asc::cpu
