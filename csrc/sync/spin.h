// Bounded spinning: cheap hand-over while both sides run, nothing once the other side has stopped.
#pragma once

#include <cstdint>

#include "sync/park.h"

namespace asc {

inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// How long a waiting thread spins before it parks: a little less than a wake-up of a halted CPU costs (65-75 us on the
// machines that we measured), and nothing where this process has one CPU, because the other side could not run.
int64_t default_spin_ns();

// Calls `ready` until it returns true or `spin_ns` have passed; always at least once. Returns its last result.
template <typename Ready>
bool spin_until(Ready&& ready, int64_t spin_ns) {
  if (ready()) return true;
  if (spin_ns <= 0) return false;
  const int64_t end = monotonic_ns() + spin_ns;
  do {
    for (int i = 0; i < 16; ++i) {
      cpu_relax();
      if (ready()) return true;
    }
  } while (monotonic_ns() < end);
  return false;
}

// Keeps the CPU busy for `ns`: imitates work.
inline void spin_for(int64_t ns) {
  const int64_t end = monotonic_ns() + ns;
  while (monotonic_ns() < end) cpu_relax();
}

}  // namespace asc
