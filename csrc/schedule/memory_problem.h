// Memory planning, the problem and its solution: buffers with known lifetimes get offsets in one arena.
// Problem -> solver (memory_solver.h) -> solution; memory_validator.h checks it and shares nothing with the solver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace asc {

// Alive in [lower, upper), in any unit of time. Two buffers whose lifetimes meet must not overlap in memory.
struct MemoryBuffer {
  int64_t lower = 0, upper = 0;
  int64_t bytes = 0;
};

struct MemoryProblem {
  std::vector<MemoryBuffer> buffers;
  int64_t alignment = 1;  // of every offset
  // Pairs that must not overlap in memory although their lifetimes, in one order of the work, do not meet: another
  // order is possible, as on several streams.
  std::vector<std::pair<uint32_t, uint32_t>> conflicts;
};

struct MemorySolution {
  std::vector<int64_t> offsets;  // by buffer
  int64_t height = 0;            // the largest end of a buffer, its size aligned
  int64_t lower_bound = 0;       // no plan is lower
  uint64_t steps = 0;            // that the search made
  bool is_optimal() const { return height == lower_bound; }
};

// Throws PlanError naming the buffer where a lifetime is empty, a size negative, the alignment not positive, a conflict
// out of range, or the sum of all aligned sizes more than 2^62.
void check_problem(const MemoryProblem& problem);

// The size of a buffer with its alignment.
int64_t aligned_bytes(const MemoryProblem& problem, size_t buffer);

// The largest sum of aligned sizes alive at one time: a lower bound of every plan's height.
int64_t max_live_bytes(const MemoryProblem& problem);

// The largest end of a buffer, its size aligned, at these offsets.
int64_t height_of(const MemoryProblem& problem, const std::vector<int64_t>& offsets);

}  // namespace asc
