// Kernels for float16 and bfloat16 made from float32 kernels: operands are converted to float32 in workspace, results
// back. Constant operands are converted once, by packing.
#pragma once

#include <cstdint>
#include <memory>

#include "kernel/kernel.h"

namespace asc::cpu {

// `packed_inputs`: bit i set where the float32 kernel, if it packs at all, reads input i from its packed copy only.
std::shared_ptr<const Tiling> create_half_tiling(const TilingContext& ctx, TilingFn float_tiling,
                                                 uint64_t packed_inputs);

// The tiling function to register for kHalfFloats.
template <TilingFn kFloatTiling, uint64_t kPackedInputs>
std::shared_ptr<const Tiling> tile_half(const TilingContext& ctx) {
  return create_half_tiling(ctx, kFloatTiling, kPackedInputs);
}

}  // namespace asc::cpu
