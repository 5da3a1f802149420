// Lets threads sleep until a condition that lives elsewhere (a ring's indices, a flag) becomes true.
#pragma once

#include <atomic>
#include <cstdint>

#include "sync/park.h"
#include "sync/spin.h"

namespace asc {

// Whoever makes the condition true calls wake() afterwards; that costs one atomic read-modify-write, and a system call
// only when somebody is parked. Any number of threads on both sides.
//
// Why no wake-up is lost: the waiter announces itself and the waker looks for waiters with a read-modify-write of the
// same word. If the waker comes second it sees the announcement; if it comes first, the waiter's announcement
// synchronises with it and the following look at the condition sees it true.
class Waiter {
 public:
  explicit Waiter(int64_t spin_ns = default_spin_ns()) : spin_ns_(spin_ns) {}
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  // Blocks until `ready()` is true: spins for a bounded time, then parks. False when `timeout_ns` passed first;
  // negative: no limit. `ready` is called on this thread only, and never again once it has returned true.
  template <typename Ready>
  bool wait(Ready&& ready, int64_t timeout_ns = -1) {
    const int64_t deadline = deadline_after(timeout_ns);
    if (spin_until(ready, timeout_ns < 0 || timeout_ns > spin_ns_ ? spin_ns_ : timeout_ns)) return true;
    for (;;) {
      const uint32_t seen = state_.fetch_or(kHasWaiters, std::memory_order_acq_rel) | kHasWaiters;
      if (ready()) return true;
      if (deadline != kNoDeadline && monotonic_ns() >= deadline) return false;
      park(state_, seen, deadline);
    }
  }

  void wake() {
    uint32_t seen = state_.fetch_add(0, std::memory_order_acq_rel);
    while (seen & kHasWaiters) {
      // Adding one clears the flag and counts up the rest, so that threads about to park on `seen` do not.
      if (!state_.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel)) continue;
      unpark_all(&state_);
      return;
    }
  }

 private:
  static constexpr uint32_t kHasWaiters = 1;

  const int64_t spin_ns_;
  std::atomic<uint32_t> state_{0};  // bit 0: somebody may be parked; above: number of wake-ups
};

}  // namespace asc
