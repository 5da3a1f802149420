// Host mode on the calling thread: each node is resolved, its memory placed, its task launched, while the device
// already runs the tasks before it. One launch per task, counted.
#pragma once

#include <vector>

#include "host/placements.h"
#include "schedule/bound_schedule.h"
#include "schedule/resolver.h"
#include "schedule/run_context.h"

namespace asc {

class SerialExecutor {
 public:
  SerialExecutor(Resolver& resolver, size_t segment, Pool& pool);

  // Launches the segment. `extents` receives the dims of data-dependent outputs, kMaxRank per output.
  // Throws what the stages throw; tasks launched before keep running.
  void run(Frame& frame, RunContext& run, int64_t* extents);

  // Launches the tasks of a schedule that was kept from a former run of the same signature: nothing to resolve, and
  // memory as it was placed then.
  static void replay(const std::shared_ptr<BoundSchedule>& schedule, Frame& frame, RunContext& run, int64_t* extents);

 private:
  struct Result {
    uint32_t output, slot;
    ValueId root;  // kNoValue: internal
  };
  struct Step {  // what a node touches, found once
    const PlanNode* node = nullptr;
    std::vector<Result> results;
    std::vector<std::pair<uint32_t, ValueId>> hosts;  // slots of host values that it computes
    uint32_t workspace = 0, packed = 0, extent = 0;
    bool has_internal = false;
  };

  Step make_step(const PlanNode& node) const;
  Table& lease(Frame& frame, RunContext& run);
  void launch_all(Frame& frame, RunContext& run, Table& table, int64_t* extents);
  void place(uint32_t n, const Step& step, Table& table);

  Resolver& resolver_;
  const size_t index_;
  const Segment& segment_;
  std::shared_ptr<TableStore> tables_;
  Placements placements_;
  std::vector<Step> steps_;                             // by node
  std::vector<std::pair<uint32_t, ValueId>> inputs_;    // slots bound before the segment runs
  std::vector<std::pair<uint32_t, ValueId>> host_ins_;  // slots of host values from outside
};

}  // namespace asc
