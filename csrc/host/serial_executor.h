// Host mode on the calling thread: each node is resolved, its memory allocated, its task launched, while the device
// already runs the tasks before it. One launch per task, counted.
#pragma once

#include "schedule/resolver.h"
#include "schedule/run_context.h"

namespace asc {

class SerialExecutor {
 public:
  SerialExecutor(Resolver& resolver, size_t segment);

  // Launches the segment. `extents` receives the dims of data-dependent outputs, kMaxRank per output.
  // Throws what the stages throw; tasks launched before keep running.
  void run(Frame& frame, RunContext& run, int64_t* extents);

 private:
  void bind_inputs(Frame& frame, Table& table) const;
  void launch_all(Frame& frame, RunContext& run, Table& table, int64_t* extents);
  void allocate(size_t n, Frame& frame, RunContext& run, Table& table);
  void release_dead(const PlanNode& node, RunContext& run, Table& table);
  void release(uint32_t slot, RunContext& run, Table& table);

  Resolver& resolver_;
  const size_t index_;
  const Segment& segment_;
  std::shared_ptr<TableStore> tables_;
  std::vector<size_t> block_bytes_;  // by slot: pool blocks held at the moment, 0 where none
};

}  // namespace asc
