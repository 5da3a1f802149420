// Host mode on the calling thread: each node is resolved, its memory placed, its task launched, while the device
// already runs the tasks before it. One launch per task, counted.
#pragma once

#include <memory>

#include "host/host_segment.h"
#include "schedule/bound_schedule.h"

namespace asc {

// Launches the segment. Throws what the stages throw; tasks launched before keep running.
void run_serial(HostSegment& segment, Frame& frame, RunContext& run, int64_t* extents);

// Launches the tasks of a schedule that was kept from a former run of the same signature: nothing to resolve, and
// memory as it was placed then.
void replay(const std::shared_ptr<BoundSchedule>& schedule, Frame& frame, RunContext& run, int64_t* extents);

}  // namespace asc
