// Sink mode: a schedule whose task chain lives on the device. A run patches the changed bindings and submits once.
#pragma once

#include <memory>

#include "schedule/bound_schedule.h"

namespace asc {

class LoadedSchedule final : public BoundSchedule {
 public:
  // Makes the chain resident. Throws DeviceError, OutOfMemoryError.
  LoadedSchedule(std::shared_ptr<const Schedule> schedule, const Plan& plan, size_t segment, Device& device);

  // Patches inputs and outputs, submits. `self` stays alive until completion (the run keeps it).
  static void submit(const std::shared_ptr<LoadedSchedule>& self, Frame& frame, RunContext& run, int64_t* extents);

  const TaskChain& chain() const { return *chain_; }
  size_t bytes() const override { return BoundSchedule::bytes() + chain_->bytes(); }

 private:
  std::unique_ptr<TaskChain> chain_;
};

}  // namespace asc
