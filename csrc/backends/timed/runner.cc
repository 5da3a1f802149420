#include "backends/timed/runner.h"

#include <algorithm>

#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include "profile/clock.h"
#include "profile/recorder.h"
#include "sync/park.h"

namespace asc {

namespace {

// Sleeping for less costs more than it imitates.
constexpr int64_t kMaxLeadNs = 100'000;

uint64_t ticks_of(int64_t ns) { return static_cast<uint64_t>(static_cast<double>(ns) / ns_per_tick() + 0.5); }

}  // namespace

TimedRunner::TimedRunner(int64_t task_ns)
    : Runner(1), task_ticks_(ticks_of(task_ns)), max_lead_ticks_(ticks_of(kMaxLeadNs)) {}

void TimedRunner::run(const Batch& batch) {
  const size_t count = run_tasks(batch, nullptr);
  const uint64_t at = std::max(device_ticks_, batch.launched_ticks);
  if (Recorder* recorder = batch.event->recorder) {
    for (size_t i = 0; i < count; ++i) {
      const uint64_t start = at + i * task_ticks_;
      recorder->device_log().add({start, start + task_ticks_, batch.event->run,
                                  static_cast<int32_t>(batch.tasks[i].node), batch.sequence, Stage::kKernel,
                                  Recorder::stream()});
    }
  }
  device_ticks_ = at + count * task_ticks_;
  if (device_ticks_ > now_ticks() + max_lead_ticks_) settle();
}

void TimedRunner::record(Point& point, uint32_t round) { point.record(round, device_ticks_); }

void TimedRunner::wait(const Point& point, uint32_t round) {
  device_ticks_ = std::max(device_ticks_, point.wait(round));
}

void TimedRunner::settle() {
  for (uint64_t now = now_ticks(); now < device_ticks_; now = now_ticks()) {
    const double remaining = static_cast<double>(device_ticks_ - now) * ns_per_tick();
    sleep_ns(static_cast<int64_t>(remaining) + 1);
  }
}

void TimedRunner::on_thread_start() {
#if defined(__linux__)
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);  // nanoseconds; the default of 50 us is longer than most tasks
#endif
}

}  // namespace asc
