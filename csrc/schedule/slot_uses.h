// Which tasks touch the memory of a schedule's buffers, and hence which buffers may share memory when tasks run on
// several streams: those of which all tasks of one have ended before the other's first task begins.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "plan/plan.h"
#include "schedule/memory_problem.h"
#include "schedule/stream_order.h"

namespace asc {

class SlotUses {
 public:
  SlotUses(const Segment& segment, const StreamOrder& order);

  // The slot, written by `node`, lies in the buffer; buffers are numbered from 0 in the order of their first slots.
  void add(uint32_t buffer, uint32_t slot, uint32_t node);
  // Whether every task that touches the buffer has ended when that of `node` begins, itself excepted.
  bool all_before(uint32_t buffer, uint32_t node) const;
  // Whether every task that touches buffer `a` has ended when the first of buffer `b` begins, itself excepted.
  bool is_before(uint32_t a, uint32_t b) const { return order_.is_single() || is_over(uses_[a], uses_[b].first); }
  // Pairs that may not share memory although their lifetimes, in the order of the list, do not meet.
  std::vector<std::pair<uint32_t, uint32_t>> find_conflicts(const MemoryProblem& problem) const;

 private:
  static constexpr uint32_t kNoTask = ~uint32_t{0};
  struct Uses {
    uint32_t first = kNoTask;    // task; all others come after it
    std::vector<uint32_t> last;  // by stream: the last task on it, or kNoTask
  };
  void note(Uses& uses, uint32_t task) const;
  bool is_over(const Uses& uses, uint32_t task) const;

  const Segment& segment_;
  const StreamOrder& order_;
  std::vector<uint32_t> task_of_;               // by node
  std::vector<std::vector<uint32_t>> readers_;  // by slot: tasks
  std::vector<Uses> uses_;                      // by buffer
};

}  // namespace asc
