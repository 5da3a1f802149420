// A one-shot gate: closed, then open for all.
#pragma once

#include <atomic>
#include <cstdint>

#include "sync/park.h"
#include "sync/spin.h"

namespace asc {

// What the opener wrote before open() is visible to every thread that saw it open. open() does not touch the latch once
// a waiter can see it open, so that waiter may destroy it at once.
class Latch {
 public:
  bool is_open() const { return state_.load(std::memory_order_acquire) == kOpen; }

  void open() {
    // Only the address is used after the exchange.
    if (state_.exchange(kOpen, std::memory_order_acq_rel) == kParked) unpark_all(&state_);
  }

  // False when `timeout_ns` passed first; negative: no limit. Spins briefly, then parks.
  bool wait(int64_t timeout_ns) const {
    if (is_open() || timeout_ns == 0) return is_open();
    const int64_t deadline = deadline_after(timeout_ns);
    const int64_t spin_ns = default_spin_ns();
    if (spin_until([this] { return is_open(); }, timeout_ns < 0 || timeout_ns > spin_ns ? spin_ns : timeout_ns))
      return true;
    for (;;) {
      uint32_t seen = kClosed;
      state_.compare_exchange_strong(seen, kParked, std::memory_order_acq_rel);
      if (seen == kOpen) return true;
      if (deadline != kNoDeadline && monotonic_ns() >= deadline) return false;
      park(state_, kParked, deadline);
    }
  }

  // Closed again. Only while nobody waits and nobody opens.
  void reset() { state_.store(kClosed, std::memory_order_relaxed); }

 private:
  enum : uint32_t { kClosed, kOpen, kParked };  // kParked: closed, and somebody may be parked

  mutable std::atomic<uint32_t> state_{kClosed};
};

}  // namespace asc
