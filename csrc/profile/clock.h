// One cheap monotonic time stamp. On x86-64 with an invariant TSC a tick is a TSC cycle, elsewhere a nanosecond.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#else
#include <chrono>
#endif

namespace asc {

inline uint64_t now_ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

// Nanoseconds per tick, measured once against the monotonic clock (about 2 ms on first use).
double ns_per_tick();

}  // namespace asc
