#include "schedule/slot_uses.h"

namespace asc {

SlotUses::SlotUses(const Segment& segment, const StreamOrder& order) : segment_(segment), order_(order) {
  if (order.is_single()) return;  // the list's order says it all
  task_of_.assign(segment.nodes.size(), kNoTask);
  readers_.resize(segment.slots.size());
  uint32_t task = 0;
  for (size_t n = 0; n < segment.nodes.size(); ++n) {
    const PlanNode& node = segment.nodes[n];
    if (!node.is_task()) continue;
    for (size_t i = 0; i < node.node.inputs.size(); ++i) readers_[node.operands[i]].push_back(task);
    task_of_[n] = task++;
  }
}

void SlotUses::add(uint32_t buffer, uint32_t slot, uint32_t node) {
  if (order_.is_single()) return;
  if (buffer == uses_.size()) {
    uses_.push_back({task_of_[node], std::vector<uint32_t>(order_.streams, kNoTask)});
  }
  note(uses_[buffer], task_of_[node]);
  for (uint32_t reader : readers_[slot]) note(uses_[buffer], reader);
}

void SlotUses::note(Uses& uses, uint32_t task) const {
  uint32_t& last = uses.last[order_.stream_of[task]];
  if (last == kNoTask || last < task) last = task;
}

bool SlotUses::is_over(const Uses& uses, uint32_t task) const {
  for (uint32_t last : uses.last)
    if (last != kNoTask && last != task && !order_.is_before(last, task)) return false;
  return true;
}

bool SlotUses::all_before(uint32_t buffer, uint32_t node) const {
  return order_.is_single() || is_over(uses_[buffer], task_of_[node]);
}

std::vector<std::pair<uint32_t, uint32_t>> SlotUses::find_conflicts(const MemoryProblem& problem) const {
  std::vector<std::pair<uint32_t, uint32_t>> conflicts;
  for (uint32_t b = 0; b < uses_.size(); ++b)
    for (uint32_t a = 0; a < b; ++a) {
      const MemoryBuffer &x = problem.buffers[a], &y = problem.buffers[b];
      if (!x.bytes || !y.bytes || (x.lower < y.upper && y.lower < x.upper)) continue;
      const bool is_ordered =
          x.upper <= y.lower ? is_over(uses_[a], uses_[b].first) : is_over(uses_[b], uses_[a].first);
      if (!is_ordered) conflicts.emplace_back(a, b);
    }
  return conflicts;
}

}  // namespace asc
