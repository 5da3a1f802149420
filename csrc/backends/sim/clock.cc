#include "backends/sim/clock.h"

#include <algorithm>
#include <cmath>

namespace asc {
namespace {

bool has(const SimTask& task, Stage stage) { return (task.stages >> static_cast<int>(stage)) & 1; }

}  // namespace

VirtualClock::VirtualClock(const SimCosts& costs)
    : costs_(costs), free_(kFirstTiler + static_cast<size_t>(costs.workers), 0) {}

int64_t VirtualClock::ns(double us) const { return static_cast<int64_t>(std::nearbyint(us * 1000)); }

void VirtualClock::begin_run(Recorder* recorder, uint32_t run) {
  recorder_ = recorder;
  run_ = run;
  launches_ = 0;
  queued_.clear();
  work(kMain, Stage::kFramework, ns(costs_.run_us));
  for (int64_t& time : free_) time = std::max(time, free_[kMain]);
}

void VirtualClock::launch(const SimTask& task) {
  work(kMain, Stage::kFramework, ns(costs_.framework_us), task.node);
  const auto tilers = static_cast<uint64_t>(costs_.workers);
  const auto tiler = static_cast<uint8_t>(tilers ? kFirstTiler + launches_ % tilers : uint64_t{kMain});
  resolve(task, tiler);
  const uint8_t placer = hand_over(tiler, kMemory);
  if (has(task, Stage::kAlloc)) work(placer, Stage::kAlloc, ns(costs_.alloc_us), task.node);
  const uint8_t launcher = hand_over(placer, kLauncher);
  if (queued_.size() >= static_cast<size_t>(costs_.queue_depth)) {
    wait(launcher, queued_.front(), Stage::kQueueFull);
    queued_.pop_front();
  }
  work(launcher, Stage::kLaunch, ns(costs_.launch_us), task.node, task.sequence);
  queued_.push_back(execute(task, free_[launcher], ns(costs_.queued_gap_us)));
  ++launches_;
}

void VirtualClock::resolve(const SimTask& task, uint8_t tiler) {
  if (has(task, Stage::kInferShape)) work(kMain, Stage::kInferShape, ns(costs_.infer_shape_us), task.node);
  if (tiler != kMain) hand_over(kMain, tiler);
  if (has(task, Stage::kTiling))
    work(tiler, Stage::kTiling, ns(task.is_tiling_made ? costs_.tiling_us : costs_.tiling_hit_us), task.node);
}

void VirtualClock::submit(const std::vector<SimTask>& tasks, uint32_t sequence) {
  for (const SimTask& task : tasks) resolve(task, kMain);
  work(kMain, Stage::kSubmit, ns(costs_.submit_us), -1, sequence);
  for (const SimTask& task : tasks) execute(task, free_[kMain], ns(costs_.chain_gap_us));
}

void VirtualClock::await_device() {
  free_[kMain] = *std::max_element(free_.begin(), free_.end());
  wait(kMain, device_, Stage::kWait);
  work(kMain, Stage::kSync, ns(costs_.sync_us));
  queued_.clear();
}

uint8_t VirtualClock::hand_over(uint8_t giver, uint8_t taker) {
  if (costs_.workers == 0) return kMain;
  free_[taker] = std::max(free_[taker], free_[giver] + ns(costs_.handover_us));
  return taker;
}

void VirtualClock::work(uint8_t worker, Stage stage, int64_t cost_ns, int32_t node, uint32_t sequence) {
  const int64_t start = free_[worker];
  free_[worker] += cost_ns;
  record(recorder_->host, start, free_[worker], stage, node, sequence, worker);
}

void VirtualClock::wait(uint8_t worker, int64_t until_ns, Stage stage) {
  const int64_t start = free_[worker];
  if (until_ns <= start) return;
  free_[worker] = until_ns;
  record(recorder_->host, start, until_ns, stage, -1, 0, worker);
}

int64_t VirtualClock::execute(const SimTask& task, int64_t launched_ns, int64_t gap_ns) {
  int64_t start = device_ + gap_ns;
  if (launched_ns > device_) start = std::max(start, launched_ns + ns(costs_.latency_us));
  device_ = start + task.kernel_ns;
  record(recorder_->device, start, device_, Stage::kKernel, task.node, task.sequence, 0);
  return start;
}

void VirtualClock::record(SpanLog& log, int64_t start_ns, int64_t end_ns, Stage stage, int32_t node, uint32_t sequence,
                          uint8_t worker) {
  log.add({static_cast<uint64_t>(start_ns), static_cast<uint64_t>(end_ns), run_, node, sequence, stage, worker});
}

}  // namespace asc
