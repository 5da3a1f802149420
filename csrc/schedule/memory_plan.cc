#include "schedule/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "base/tensor.h"

namespace asc {
namespace {

bool overlap(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

}  // namespace

MemoryPlan plan_memory(const std::vector<Lifetime>& buffers) {
  MemoryPlan plan;
  plan.offsets.resize(buffers.size());
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  std::vector<size_t> placed;  // by offset
  for (size_t i : order) {
    const size_t bytes = round_up(buffers[i].bytes);
    size_t at = 0;
    for (size_t j : placed) {
      if (!overlap(buffers[i], buffers[j])) continue;
      if (at + bytes <= plan.offsets[j]) break;
      at = std::max(at, plan.offsets[j] + round_up(buffers[j].bytes));
    }
    plan.offsets[i] = at;
    plan.total_bytes = std::max(plan.total_bytes, at + bytes);
    const auto where = std::upper_bound(placed.begin(), placed.end(), at,
                                        [&](size_t value, size_t j) { return value < plan.offsets[j]; });
    placed.insert(where, i);
  }
  return plan;
}

bool is_valid(const std::vector<Lifetime>& buffers, const MemoryPlan& plan) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    const size_t end = plan.offsets[i] + buffers[i].bytes;
    if (end > plan.total_bytes || plan.offsets[i] % kAlignment) return false;
    for (size_t j = 0; j < i; ++j) {
      const bool together = overlap(buffers[i], buffers[j]);
      const bool apart = end <= plan.offsets[j] || plan.offsets[j] + buffers[j].bytes <= plan.offsets[i];
      if (together && !apart) return false;
    }
  }
  return true;
}

}  // namespace asc
