#include "host/serial_executor.h"

#include <algorithm>

namespace asc {
namespace {

template <class Timer>
void launch_all(HostSegment& segment, HostSegment::Use& use) {
  for (uint32_t n = 0; n < segment.size(); ++n) {
    const bool has_changed = segment.resolve<Timer>(n, use);
    segment.place<Timer>(n, has_changed, use);
    segment.launch<Timer>(n, use);
  }
}

// The same with the time of each stage, from which the pipeline is chosen.
template <class Timer>
void launch_all_measured(HostSegment& segment, HostSegment::Use& use) {
  uint64_t ticks[3] = {}, last = now_ticks();
  const auto count = [&](int stage) {
    const uint64_t now = now_ticks();
    ticks[stage] += now - last;
    last = now;
  };
  const uint64_t blocked = use.run->streams->blocked_ticks();
  for (uint32_t n = 0; n < segment.size(); ++n) {
    const bool has_changed = segment.resolve<Timer>(n, use);
    count(0);
    segment.place<Timer>(n, has_changed, use);
    count(1);
    segment.launch<Timer>(n, use);
    count(2);
  }
  ticks[2] -= std::min(ticks[2], use.run->streams->blocked_ticks() - blocked);
  const double ns = ns_per_tick() / segment.size();
  segment.costs(use.run->sighting.novelty) = {static_cast<double>(ticks[0]) * ns, static_cast<double>(ticks[1]) * ns,
                                              static_cast<double>(ticks[2]) * ns, segment.size()};
}

template <class Timer>
void run_nodes(HostSegment& segment, HostSegment::Use& use) {
  if (use.run->is_inline || segment.size() == 0)
    launch_all<Timer>(segment, use);
  else
    launch_all_measured<Timer>(segment, use);
}

}  // namespace

void run_serial(HostSegment& segment, Frame& frame, RunContext& run, int64_t* extents) {
  HostSegment::Use use = segment.begin(frame, run, extents);
  try {
    run.recorder ? run_nodes<StageTimer>(segment, use) : run_nodes<NoTimer>(segment, use);
  } catch (...) {
    segment.end(use, false);
    throw;
  }
  segment.end(use, true);
}

void replay(const std::shared_ptr<BoundSchedule>& schedule, Frame& frame, RunContext& run, int64_t* extents) {
  const Table& table = BoundSchedule::lease(schedule, frame, run, extents);
  schedule->launch_tasks(*run.streams, table.slots.data(), *run.event, run.sequence, run.is_inline);
  run.counters->stream_waits += schedule->schedule().streams.waits;
  run.counters->launches += schedule->schedule().tasks.size();
  ++run.counters->replays;
}

}  // namespace asc
