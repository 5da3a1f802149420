#include "profile/clock.h"

#include <time.h>

#include <cstdint>

namespace asc {

namespace {

struct Sample {
  uint64_t ticks;
  int64_t ns;
};

int64_t clock_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// Both clocks at one moment: the tightest of a few tries, since an interrupt may fall between the readings.
Sample sample_clocks() {
  Sample best{0, 0};
  uint64_t best_width = UINT64_MAX;
  for (int i = 0; i < 8; ++i) {
    const uint64_t before = now_ticks();
    const int64_t ns = clock_ns();
    const uint64_t width = now_ticks() - before;
    if (width >= best_width) continue;
    best_width = width;
    best = {before + width / 2, ns};
  }
  return best;
}

double measure_ns_per_tick() {
#if defined(__x86_64__)
  const Sample first = sample_clocks();
  Sample last = first;
  while (last.ns - first.ns < 2'000'000) {  // a signal may cut the pause short
    const timespec pause{0, 2'000'000};
    nanosleep(&pause, nullptr);
    last = sample_clocks();
  }
  const double ticks = static_cast<double>(last.ticks - first.ticks);
  return ticks > 0 ? static_cast<double>(last.ns - first.ns) / ticks : 1.0;
#else
  return 1.0;
#endif
}

}  // namespace

double ns_per_tick() {
  static const double value = measure_ns_per_tick();
  return value;
}

}  // namespace asc
