// Whether the inputs of a run fit the types that the plan declares.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace asc {

// `inputs` in graph order, as many as the plan has. Throws GraphError, with the input's name, for another element type
// or rank, and for dimensions that differ from static ones or, where they share a symbol, from one another.
void check_inputs(const Plan& plan, const std::vector<TensorView>& inputs);

}  // namespace asc
