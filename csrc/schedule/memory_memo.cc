#include "schedule/memory_memo.h"

#include <algorithm>
#include <numeric>

namespace asc {
namespace {

constexpr uint64_t kMomentsPerBuffer = 64;  // in longer times, heights over time are not the quick way

}  // namespace

MemorySolution MemoryMemo::solve(const MemoryProblem& problem, const MemoryLimits& limits) {
  check_problem(problem);
  if (std::optional<MemorySolution> found = follow(problem)) {
    ++followed_;
    solution_ = std::move(*found);
  } else {
    solution_ = solve_memory(problem, limits);
    order_.resize(problem.buffers.size());
    std::iota(order_.begin(), order_.end(), 0u);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](uint32_t a, uint32_t b) { return solution_.offsets[a] < solution_.offsets[b]; });
  }
  last_ = problem;
  return solution_;
}

// With explicit conflicts, heights over time do not say what lies below a buffer.
bool MemoryMemo::has_same_lifetimes(const MemoryProblem& problem) const {
  if (problem.buffers.size() != last_.buffers.size() || problem.alignment != last_.alignment) return false;
  if (problem.buffers.empty() || !problem.conflicts.empty() || !last_.conflicts.empty()) return false;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const MemoryBuffer &a = problem.buffers[i], &b = last_.buffers[i];
    if (a.lower != b.lower || a.upper != b.upper) return false;
  }
  return true;
}

bool MemoryMemo::has_same_sizes(const MemoryProblem& problem) const {
  for (size_t i = 0; i < problem.buffers.size(); ++i)
    if (aligned_bytes(problem, i) != aligned_bytes(last_, i)) return false;
  return true;
}

std::optional<MemorySolution> MemoryMemo::follow(const MemoryProblem& problem) const {
  if (!has_same_lifetimes(problem)) return std::nullopt;
  if (has_same_sizes(problem)) return solution_;
  int64_t begin = problem.buffers[0].lower, end = problem.buffers[0].upper;
  for (const MemoryBuffer& b : problem.buffers) begin = std::min(begin, b.lower), end = std::max(end, b.upper);
  const uint64_t moments = static_cast<uint64_t>(end) - static_cast<uint64_t>(begin);
  if (moments > kMomentsPerBuffer * problem.buffers.size()) return std::nullopt;
  std::vector<int64_t> tops(moments, 0), changes(moments + 1, 0);
  MemorySolution s;
  s.offsets.resize(problem.buffers.size(), 0);
  for (uint32_t x : order_) {
    const int64_t bytes = aligned_bytes(problem, x);
    if (!bytes) continue;
    const auto lo = problem.buffers[x].lower - begin, hi = problem.buffers[x].upper - begin;
    s.offsets[x] = *std::max_element(tops.begin() + lo, tops.begin() + hi);
    std::fill(tops.begin() + lo, tops.begin() + hi, s.offsets[x] + bytes);
    s.height = std::max(s.height, s.offsets[x] + bytes);
    changes[static_cast<size_t>(lo)] += bytes;
    changes[static_cast<size_t>(hi)] -= bytes;
  }
  int64_t live = 0;
  for (int64_t change : changes) s.lower_bound = std::max(s.lower_bound, live += change);
  if (!s.is_optimal()) return std::nullopt;
  return s;
}

}  // namespace asc
