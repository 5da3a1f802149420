// Lets device time pass for the timed device.
#pragma once

#include <cstdint>

#include "device/runner.h"

namespace asc {

class TimedRunner final : public Runner {
 public:
  explicit TimedRunner(int64_t task_ns);

  void run(const Batch& batch) override;
  // Points carry device time from stream to stream.
  void record(Point& point, uint32_t round) override;
  void wait(const Point& point, uint32_t round) override;
  // Sleeps until the device time of the last task.
  void settle() override;
  void on_thread_start() override;

 private:
  const uint64_t task_ticks_;
  const uint64_t max_lead_ticks_;  // how far device time may be ahead of the clock while entries leave the ring
  uint64_t device_ticks_ = 0;      // when the last task ends
};

}  // namespace asc
