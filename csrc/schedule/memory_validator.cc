#include "schedule/memory_validator.h"

namespace asc {
namespace {

std::string span(const MemoryProblem& problem, const MemorySolution& solution, size_t i) {
  const int64_t at = solution.offsets[i];
  return "buffer " + std::to_string(i) + " at [" + std::to_string(at) + ", " +
         std::to_string(at + problem.buffers[i].bytes) + ")";
}

bool overlap(const MemoryProblem& problem, const MemorySolution& solution, size_t i, size_t j) {
  const MemoryBuffer &a = problem.buffers[i], &b = problem.buffers[j];
  return solution.offsets[i] < solution.offsets[j] + b.bytes && solution.offsets[j] < solution.offsets[i] + a.bytes;
}

}  // namespace

std::string find_fault(const MemoryProblem& problem, const MemorySolution& solution) {
  const size_t count = problem.buffers.size();
  if (solution.offsets.size() != count)
    return std::to_string(solution.offsets.size()) + " offsets for " + std::to_string(count) + " buffers";
  for (size_t i = 0; i < count; ++i) {
    const int64_t at = solution.offsets[i];
    if (at < 0 || at % problem.alignment != 0)
      return span(problem, solution, i) + " is negative or not aligned to " + std::to_string(problem.alignment);
    if (at > solution.height - problem.buffers[i].bytes)
      return span(problem, solution, i) + " ends above the height " + std::to_string(solution.height);
  }
  for (size_t i = 0; i < count; ++i)
    for (size_t j = 0; j < i; ++j) {
      const MemoryBuffer &a = problem.buffers[i], &b = problem.buffers[j];
      if (a.lower < b.upper && b.lower < a.upper && overlap(problem, solution, i, j))
        return span(problem, solution, j) + " overlaps " + span(problem, solution, i) + " while both are alive";
    }
  for (const auto& [i, j] : problem.conflicts)
    if (overlap(problem, solution, i, j))
      return span(problem, solution, i) + " overlaps " + span(problem, solution, j) + ", which it conflicts with";
  return "";
}

}  // namespace asc
