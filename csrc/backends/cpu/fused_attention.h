// Attention spelt out in operators, found among the steps of a fused node: see plan/attention.cc for what it may
// consist of. Transpositions, expansions and reshapes of its operands become distances between rows.
#pragma once

#include <memory>
#include <vector>

#include "kernel/kernel.h"
#include "ops/fused.h"

namespace asc::cpu {

struct FoundAttention {
  uint32_t members = 0;           // bit i: step i is part of it
  size_t last = 0;                // step that makes the result
  std::vector<ValueId> operands;  // inputs of the task
  std::shared_ptr<const Tiling> tiling;
};

// `shapes` of all values of the body. Without a tiling where there is none, or none of shapes that one launch can do.
FoundAttention find_attention(const TilingContext& ctx, const FusedBody& body, const Shape* shapes);

}  // namespace asc::cpu
