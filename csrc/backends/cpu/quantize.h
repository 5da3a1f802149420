// The kernels of quantised values that have files of their own.
#pragma once

#include "backends/cpu/tiling_base.h"

namespace asc::cpu {

void register_matmul_integer(KernelRegistry& registry);

}  // namespace asc::cpu
