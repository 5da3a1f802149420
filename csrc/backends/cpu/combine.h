// What a scatter does where it meets an element: overwrite it, or combine it with the update.
#pragma once

#include <cstdint>

#include "backends/cpu/tiling_base.h"

namespace asc::cpu {

// into[i] = into[i] (reduction) from[i] for `count` elements.
using CombineFn = void (*)(void* into, const void* from, int64_t count);

// The function for the node's `reduction` attribute (none, add, mul, min, max). Throws GraphError for another name.
CombineFn find_combine(const TilingContext& ctx, DType type);

}  // namespace asc::cpu
