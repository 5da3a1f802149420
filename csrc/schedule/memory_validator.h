// Checks a memory plan, in the plainest way there is; shares no code with the solver.
#pragma once

#include <string>

#include "schedule/memory_problem.h"

namespace asc {

// Empty where the solution is valid: one offset for every buffer, not negative, aligned, all ends within the height,
// and no two buffers that conflict overlap. Otherwise what is wrong first. Quadratic.
std::string find_fault(const MemoryProblem& problem, const MemorySolution& solution);

}  // namespace asc
