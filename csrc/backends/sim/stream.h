// The stream of the simulated device: what enters it is executed at once, on the launching thread, and charged to the
// virtual clock where a profile is on. Nothing is ever in flight.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

#include "backends/sim/clock.h"
#include "device/device.h"
#include "device/runner.h"
#include "kernel/kernel.h"

namespace asc {

struct SimTiling final : Tiling {
  size_t bytes() const override { return sizeof(*this) + inner->bytes(); }
  std::shared_ptr<const Tiling> inner;  // computes nothing, but reports extents
  Work work;
  uint64_t number = 0;  // in the order of making; never given twice
};

// Inline execution is refused: a host that waits for a device is what is simulated.
class SimStream final : public Stream {
 public:
  explicit SimStream(const SimCosts& costs);

  void launch(const Task& task, void* const* slots, Event* event, uint32_t sequence) override;
  void submit(const TaskChain& chain, void* const* slots, Event* event, uint32_t sequence, uint32_t round) override;
  void copy(void* to, const void* from, size_t bytes, Event* event) override;
  void record(Event* event) override;
  // No stream waits for another where there is only one.
  void record(Point& point, uint32_t round, Event*) override { point.record(round, 0); }
  void wait(const Point& point, uint32_t round, Event*) override { point.wait(round); }
  bool query() const override;
  void synchronize() override;
  bool begin_inline() override { return false; }
  void end_inline() override {}

 private:
  class Executor final : public Runner {
   public:
    Executor() : Runner(1) {}
    // How many of the tasks succeeded.
    size_t execute(const Batch& batch) { return run_tasks(batch, nullptr); }
  };

  void require_same_process() const;
  bool begin(Event* event);
  SimTask charged(const Task& task, Event* event, uint32_t sequence);

  const SimCosts costs_;
  const uint32_t fork_generation_;
  Executor executor_;
  VirtualClock clock_;
  Recorder* recorder_ = nullptr;  // of the run that is being launched
  uint32_t run_ = 0;
  std::unordered_set<uint64_t> known_;  // tilings that this stream has met, for a tiling is made before its first task
};

}  // namespace asc
