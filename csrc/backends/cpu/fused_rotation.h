// The rotation of rotary position embeddings, spelt out as Concat(Neg(second half), first half) of the last dimension,
// found among the steps of a fused node and computed as one element-wise step.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/element_step.h"
#include "ops/fused.h"

namespace asc::cpu {

struct FoundRotation {
  ValueId x = kNoValue;
  size_t last = 0;       // the Concat
  uint32_t members = 0;  // bit i: step i is part of it
  ElementStep step;      // on x, in whole rows
};

// `shapes` of all values of the body. Only rotations of the node's inputs, in rows that divide `tile` elements.
std::vector<FoundRotation> find_rotations(const ShapeContext& ctx, const FusedBody& body, const Shape* shapes,
                                          int64_t tile);

}  // namespace asc::cpu
