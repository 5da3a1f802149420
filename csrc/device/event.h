// Completion point of a run: signalled once by the executor, carrying the first error of the run.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "device/task.h"
#include "profile/recorder.h"
#include "sync/latch.h"

namespace asc {

// States: pending -> done. A failure may be stored any time before done; the first one is kept. A waiter that saw the
// event done may destroy it at once.
class Event {
 public:
  static constexpr uint32_t kNoNode = ~uint32_t{0};  // of a failure that belongs to no task

  Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // --- executor side -------------------------------------------------------------------------------------------
  // True once a task of this run failed, or the run was cancelled: later tasks of the run are skipped.
  bool has_failed() const { return failed_ || is_cancelled_; }
  // Any executor of the run before it is signalled, or the launching thread. The first failure is kept.
  void fail(uint32_t node, Status status, std::string what);
  void signal() { done_.open(); }

  // --- waiter side (any thread) --------------------------------------------------------------------------------
  bool is_done() const { return done_.is_open(); }
  // False when `timeout_ns` passed first; negative: no limit. Spins briefly, then parks. Throws DeviceError in a child
  // process that was forked while the event was pending: nobody would ever signal it there.
  bool wait(int64_t timeout_ns) const;
  // Later entries of the run are skipped. False when it is done already. A chain that has begun completes.
  bool cancel() {
    if (is_done()) return false;
    is_cancelled_ = true;
    return true;
  }
  bool is_cancelled() const { return is_cancelled_; }
  // Valid once done.
  Status status() const { return status_; }
  uint32_t failed_node() const { return node_; }
  const std::string& error() const { return error_; }

  // Back to pending, by the owner, when nobody waits and nothing is in flight.
  void reset();

  // Recording of this run; null: off. Set by the owner before the first launch.
  Recorder* recorder = nullptr;
  uint32_t run = 0;

 private:
  Latch done_;
  std::atomic<bool> has_first_{false};  // somebody writes, or has written, what failed
  std::atomic<bool> failed_{false};
  std::atomic<bool> is_cancelled_{false};
  Status status_ = Status::kOk;
  uint32_t node_ = 0;
  uint32_t fork_generation_;  // of the process that launches into this event
  std::string error_;
};

}  // namespace asc
