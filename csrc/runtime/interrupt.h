// Whoever may take without end, a run or a wait for one, asks now and then whether to go on: Python's signals wait for
// it.
#pragma once

#include "profile/clock.h"

namespace asc {

// Called in the thread that launches or waits; throws to end that. Set once, before the first run.
inline void (*check_interrupt)() = nullptr;

class InterruptPoll {
 public:
  // Throws what check_interrupt throws, which it asks every 50 ms.
  void poll() {
    const uint64_t now = now_ticks();
    if (static_cast<double>(now - last_ticks_) * ns_per_tick() < 50e6) return;
    last_ticks_ = now;
    if (check_interrupt) check_interrupt();
  }

 private:
  uint64_t last_ticks_ = now_ticks();
};

}  // namespace asc
