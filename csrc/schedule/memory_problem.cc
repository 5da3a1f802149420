#include "schedule/memory_problem.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace asc {
namespace {

constexpr int64_t kMaxTotalBytes = int64_t{1} << 62;

[[noreturn]] void fail(size_t buffer, const std::string& what) {
  throw PlanError("[memplan] buffer " + std::to_string(buffer) + ": " + what);
}

}  // namespace

void check_problem(const MemoryProblem& problem) {
  if (problem.alignment < 1 || problem.alignment > kMaxTotalBytes)
    throw PlanError("[memplan] alignment " + std::to_string(problem.alignment) + "; expected 1 or more bytes");
  int64_t total = 0;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const MemoryBuffer& b = problem.buffers[i];
    if (b.lower >= b.upper)
      fail(i, "lifetime [" + std::to_string(b.lower) + ", " + std::to_string(b.upper) +
                  ") is empty; expected lower < upper");
    if (b.bytes < 0) fail(i, "size " + std::to_string(b.bytes) + " is negative; expected 0 or more bytes");
    if (b.bytes > kMaxTotalBytes - problem.alignment || total > kMaxTotalBytes - aligned_bytes(problem, i))
      fail(i, "size " + std::to_string(b.bytes) + " takes the sum of all sizes above 2^62; use smaller buffers");
    total += aligned_bytes(problem, i);
  }
  const size_t count = problem.buffers.size();
  for (const auto& [a, b] : problem.conflicts)
    if (a >= count || b >= count || a == b)
      throw PlanError("[memplan] conflict of buffers " + std::to_string(a) + " and " + std::to_string(b) +
                      "; expected two different ones of " + std::to_string(count));
}

int64_t aligned_bytes(const MemoryProblem& problem, size_t buffer) {
  const int64_t rest = problem.buffers[buffer].bytes % problem.alignment;
  return problem.buffers[buffer].bytes + (rest ? problem.alignment - rest : 0);
}

int64_t max_live_bytes(const MemoryProblem& problem) {
  struct Event {
    int64_t time, change;
  };
  std::vector<Event> events;
  events.reserve(problem.buffers.size() * 2);
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const int64_t bytes = aligned_bytes(problem, i);
    events.push_back({problem.buffers[i].lower, bytes});
    events.push_back({problem.buffers[i].upper, -bytes});
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.time != b.time ? a.time < b.time : a.change < b.change; });
  int64_t live = 0, most = 0;
  for (const Event& e : events) most = std::max(most, live += e.change);
  return most;
}

int64_t height_of(const MemoryProblem& problem, const std::vector<int64_t>& offsets) {
  int64_t height = 0;
  for (size_t i = 0; i < offsets.size(); ++i) height = std::max(height, offsets[i] + aligned_bytes(problem, i));
  return height;
}

}  // namespace asc
