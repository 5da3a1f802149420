// A point between streams: one stream records it, once a round, and others wait for a round of it.
#pragma once

#include <atomic>
#include <cstdint>

#include "sync/park.h"
#include "sync/spin.h"

namespace asc {

// Rounds rise from 1 and may wrap around: between a record and its waits there are never 2^30 of them. What the
// recording side wrote before record() is visible to every side whose wait() for that round has returned. record() does
// not touch the point once a waiter can see the round, so that waiter may end what the point belongs to.
class Point {
 public:
  Point() = default;
  Point(const Point&) = delete;
  Point& operator=(const Point&) = delete;

  // `ticks` go to the waiters: the recording stream's own time, where it has one.
  void record(uint32_t round, uint64_t ticks) {
    ticks_.store(ticks, std::memory_order_relaxed);
    // Only the address is used after the exchange.
    if (state_.exchange(round << 1, std::memory_order_acq_rel) & kHasWaiters) unpark_all(&state_);
  }

  bool has_reached(uint32_t round) const { return is_at(state_.load(std::memory_order_acquire), round); }

  // Returns the ticks of the record. Spins briefly, then parks.
  uint64_t wait(uint32_t round) const {
    if (!spin_until([&] { return has_reached(round); }, default_spin_ns())) park_until(round);
    return ticks_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr uint32_t kHasWaiters = 1;

  static bool is_at(uint32_t state, uint32_t round) {
    return static_cast<int32_t>((state & ~kHasWaiters) - (round << 1)) >= 0;
  }

  void park_until(uint32_t round) const {
    for (;;) {
      uint32_t seen = state_.load(std::memory_order_acquire);
      if (is_at(seen, round)) return;
      if (!(seen & kHasWaiters) && !state_.compare_exchange_strong(seen, seen | kHasWaiters, std::memory_order_acq_rel))
        continue;
      park(state_, seen | kHasWaiters, kNoDeadline);
    }
  }

  mutable std::atomic<uint32_t> state_{0};  // bit 0: somebody may be parked; above: the last round recorded
  std::atomic<uint64_t> ticks_{0};
};

}  // namespace asc
