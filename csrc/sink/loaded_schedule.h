// Sink mode: a schedule whose task chains, one for each stream that it uses, live on the device. A run patches the
// changed bindings and submits once: host work does not depend on the number of tasks.
#pragma once

#include <memory>
#include <vector>

#include "schedule/bound_schedule.h"

namespace asc {

class LoadedSchedule final : public BoundSchedule {
 public:
  // Makes the chains resident. Throws DeviceError, OutOfMemoryError.
  LoadedSchedule(std::shared_ptr<const Schedule> schedule, const Plan& plan, size_t segment, Device& device);

  // Patches inputs and outputs, submits. `self` stays alive until completion (the run keeps it).
  static void submit(const std::shared_ptr<LoadedSchedule>& self, Frame& frame, RunContext& run, int64_t* extents);

  // Submits with a table that is filled in. `is_inline`: the first stream executes on this thread. Throws DeviceError;
  // then nothing of the schedule is executing on further streams any more.
  void submit_chains(const Streams& streams, void* const* slots, Event& event, uint32_t sequence, bool is_inline) {
    if (chains_.empty())
      streams.first().submit(*in_order_, slots, &event, sequence);
    else
      submit_on_streams(streams, slots, event, sequence, is_inline);
  }

  size_t bytes() const override;

 private:
  void submit_on_streams(const Streams& streams, void* const* slots, Event& event, uint32_t sequence, bool is_inline);

  std::unique_ptr<TaskChain> in_order_;             // all tasks, for one stream
  std::vector<std::unique_ptr<TaskChain>> chains_;  // by stream; empty where there is one
};

}  // namespace asc
