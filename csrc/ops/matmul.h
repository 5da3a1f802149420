// The shape rule that all matrix products share.
#pragma once

#include "ops/op.h"

namespace asc {

// [..., m, k] x [..., k, n], leading dimensions broadcast; a vector operand is a row (left) or a column (right) whose
// extra dimension is dropped from the result.
void infer_matmul(InferContext& ctx);

}  // namespace asc
