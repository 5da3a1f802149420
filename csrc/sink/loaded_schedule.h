// Sink mode: a schedule whose task chain lives on the device. A run patches the changed bindings and submits once.
#pragma once

#include <memory>

#include "schedule/run_context.h"
#include "schedule/schedule.h"

namespace asc {

class LoadedSchedule {
 public:
  // Makes the chain resident. Throws DeviceError, OutOfMemoryError.
  LoadedSchedule(std::shared_ptr<const Schedule> schedule, const Plan& plan, size_t segment, Device& device);

  // Patches inputs and outputs, submits. `self` stays alive until completion (the run keeps it).
  static void submit(const std::shared_ptr<LoadedSchedule>& self, Frame& frame, RunContext& run, int64_t* extents);

  const Schedule& schedule() const { return *schedule_; }
  size_t bytes() const { return bytes_; }

 private:
  struct InputSlot {
    uint32_t slot;
    ValueId root;
  };

  std::shared_ptr<const Schedule> schedule_;
  std::unique_ptr<TaskChain> chain_;
  std::shared_ptr<TableStore> tables_;
  std::vector<InputSlot> inputs_;
  std::vector<std::pair<uint32_t, size_t>> extents_;  // slot, offset in dims
  size_t bytes_;
};

}  // namespace asc
