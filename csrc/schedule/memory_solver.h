// Solves a memory planning problem: greedy plans at once, then an exact search while its budget lasts.
#pragma once

#include <cstdint>
#include <functional>

#include "schedule/memory_problem.h"

namespace asc {

struct MemoryLimits {
  int64_t capacity = -1;  // a plan of at most this height ends the search; negative: go for the lowest plan
  int64_t small = 0;      // a plan of at most this height ends the search, if there is one
  uint64_t steps = 0;     // of the search; 0: greedy only
  // Asked now and then; true ends the search with the best plan so far. It may throw: the exception passes through.
  std::function<bool()> should_stop = [] { return false; };
  // Called with each better plan's height.
  std::function<void(int64_t height, int64_t lower_bound)> on_better = [](int64_t, int64_t) {};
};

// The lowest plan found. Deterministic for given limits unless `should_stop` ends it. Plans with explicit conflicts are
// greedy ones; all others are searched exactly, and proved optimal where the search says so. Throws PlanError for a
// malformed problem.
MemorySolution solve_memory(const MemoryProblem& problem, const MemoryLimits& limits);

}  // namespace asc
