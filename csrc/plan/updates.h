// Results that a run may write where an input lies: a cache that the model returns with a few rows replaced.
#pragma once

#include "plan/plan.h"

namespace asc {

// Whether result `output` may be computed over the memory of input `input`, on devices whose scatter kernels allow it:
// it is that input with elements replaced, and nothing else reads the input's contents. False otherwise, also where
// one of the two does not exist.
bool may_lie_over(const Plan& plan, size_t output, size_t input);

}  // namespace asc
