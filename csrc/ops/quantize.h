// How scales lie over the values of QuantizeLinear and DequantizeLinear.
#pragma once

#include "ops/op.h"

namespace asc {

// The values as [outer, axis, inner]. One scale for all (outer = axis = 1), for each index of the axis, or for each
// `block` indices of the axis at each outer and inner position.
struct ScaleBlocks {
  int64_t outer = 1, axis = 1, inner = 1, block = 1;
  bool is_blocked = false;
  int64_t blocks() const { return (axis + block - 1) / block; }
};

// From the shapes of inputs 0 and 1 and the attributes axis and block_size. Throws GraphError where they do not fit.
ScaleBlocks read_scale_blocks(const ShapeContext& ctx);

}  // namespace asc
