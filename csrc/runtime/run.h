// One run of an executable: its event, its results, and what it must keep until completion.
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/level.h"

namespace asc {

class Executable;

// The error that a failed task left in the event of its run.
std::exception_ptr kernel_error(const Event& event, const Executable& executable);

class Run : public Results {
 public:
  struct Result {
    TensorView view;                // of the bound or the fresh buffer
    std::shared_ptr<Buffer> fresh;  // null when bound
    bool is_bound = false;
  };

  Run(std::shared_ptr<Executable> executable, const std::vector<TensorView>& bound);
  ~Run() override;  // completes first

  bool is_done() const { return event_.is_done(); }
  // Waits up to `timeout_ns` (negative: no limit), then raises the first error of the run, if any. Throws
  // WaitTimeoutError when time is up; the run goes on.
  void wait(int64_t timeout_ns);
  // Waits for the end of a launched run; throws nothing.
  void complete() noexcept;
  // Skips what has not executed; wait then raises RunCancelledError. False when the run has completed.
  bool cancel() { return event_.cancel(); }
  // Whether the device was given up with this run unfinished: what it was given must never be freed. Once done.
  bool is_lost() const { return event_.is_done() && event_.status() == Status::kLost; }
  // Valid after wait returned.
  const std::vector<Result>& results() const { return results_; }

  // Results
  void* place(size_t i, size_t bytes) override;
  void set_shape(size_t i, const Shape& shape) override;

 private:
  friend class Executable;
  const PlanValue& output(size_t i) const;
  void check_limit(size_t i, size_t bytes) const;  // throws OutOfMemoryError
  bool wait_for_event(int64_t timeout_ns) const;   // throws what check_interrupt throws
  void record_wait(uint64_t start);
  void keep_what_is_lost();
  void settle();  // after completion, once: gives back what the run held, keeps the first error

  std::shared_ptr<Executable> executable_;
  Event event_;
  RunHoldings holdings_;
  std::vector<Result> results_;
  std::exception_ptr error_;
  size_t fresh_bytes_ = 0;
  bool is_launched_ = false;  // the event will be signalled
  bool is_inline_ = false;    // executed on the launching thread
  bool is_settled_ = false;
  std::mutex mutex_;  // one waiter settles
};

}  // namespace asc
