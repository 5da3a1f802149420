// Memory plans for problems that follow each other and differ in sizes alone, as near shapes of one graph do.
#pragma once

#include <optional>
#include <vector>

#include "schedule/memory_solver.h"

namespace asc {

// Remembers the plan before. Not shared between threads.
class MemoryMemo {
 public:
  // As solve_memory; but where lifetimes are those of the problem before, its buffers are first stacked in the order in
  // which they lay there, which takes a small part of the time. That plan is taken where it is optimal, so that no plan
  // is higher than one made anew would be proved to have to be.
  MemorySolution solve(const MemoryProblem& problem, const MemoryLimits& limits);

  uint64_t followed() const { return followed_; }

 private:
  std::optional<MemorySolution> follow(const MemoryProblem& problem) const;
  bool has_same_lifetimes(const MemoryProblem& problem) const;
  bool has_same_sizes(const MemoryProblem& problem) const;

  MemoryProblem last_;
  MemorySolution solution_;      // of it
  std::vector<uint32_t> order_;  // of its buffers, from the lowest up
  uint64_t followed_ = 0;
};

}  // namespace asc
