// The virtual clock of one stream: when the host's workers are free, and when the device is. Times are whole
// nanoseconds that follow from what was done and from the costs; no clock of the machine is read.
// `ascendsched/sim/engine.py` plays whole clusters by the same rules; a test compares the two.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "backends/sim/costs.h"
#include "profile/recorder.h"

namespace asc {

struct SimTask {
  int32_t node = 0;
  uint32_t sequence = 0;
  uint16_t stages = 0;          // that the host went through for it, as Recorder::take_marks
  bool is_tiling_made = false;  // and not found in the cache
  int64_t kernel_ns = 0;
};

// One thread at a time. Spans go to the recorder of the run.
class VirtualClock {
 public:
  explicit VirtualClock(const SimCosts& costs);

  void begin_run(Recorder* recorder, uint32_t run);
  // Host mode: the stages of one task, its launch and its execution.
  void launch(const SimTask& task);
  // Sink mode: what resolving `tasks` took, where it was done in this run; one submit; their execution.
  void submit(const std::vector<SimTask>& tasks, uint32_t sequence);
  // The host waits until the device has done all, and learns of it.
  void await_device();

 private:
  enum Worker : uint8_t { kMain, kMemory, kLauncher, kFirstTiler };

  void work(uint8_t worker, Stage stage, int64_t cost_ns, int32_t node = -1, uint32_t sequence = 0);
  void resolve(const SimTask& task, uint8_t tiler);
  uint8_t hand_over(uint8_t giver, uint8_t taker);
  void wait(uint8_t worker, int64_t until_ns, Stage stage);
  int64_t execute(const SimTask& task, int64_t launched_ns, int64_t gap_ns);
  void record(SpanLog& log, int64_t start_ns, int64_t end_ns, Stage stage, int32_t node, uint32_t sequence,
              uint8_t worker);
  int64_t ns(double us) const;

  const SimCosts costs_;
  std::vector<int64_t> free_;   // by worker
  int64_t device_ = 0;          // when the device is free
  std::deque<int64_t> queued_;  // when what the stream holds started
  uint64_t launches_ = 0;       // of this run
  Recorder* recorder_ = nullptr;
  uint32_t run_ = 0;
};

}  // namespace asc
