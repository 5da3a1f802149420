// A convolution with channels last among the steps of a fused node, and what follows it that one launch can do with it:
// activations, and additions of what has the result's shape.
#pragma once

#include <memory>
#include <vector>

#include "kernel/kernel.h"
#include "ops/fused.h"

namespace asc::cpu {

struct FoundConv {
  uint32_t members = 0;           // bit i: step i is part of it
  size_t last = 0;                // step that makes the result
  std::vector<ValueId> operands;  // inputs of the task
  std::shared_ptr<const Tiling> tiling;
};

// `shapes` of all values of the body. Without a tiling where there is none, or nothing that may follow it.
FoundConv find_conv(const TilingContext& ctx, const FusedBody& body, const Shape* shapes);

}  // namespace asc::cpu
