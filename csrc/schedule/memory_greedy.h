// Plans at once: buffers one after the other, each in the lowest gap that holds it.
#pragma once

#include <functional>

#include "schedule/memory_problem.h"

namespace asc {

// The best of several orders. Takes O(n log n) for a first plan by order of time, and O(n^2) for each further order;
// so many are tried as stay within some 10^8 comparisons. Ends early at `goal` bytes or once `should_stop()`.
// `problem` must have passed check_problem.
std::vector<int64_t> plan_greedily(const MemoryProblem& problem, int64_t goal,
                                   const std::function<bool()>& should_stop);

}  // namespace asc
