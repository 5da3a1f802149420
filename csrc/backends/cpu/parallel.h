// Work shared out to the OpenMP team of the launching thread.
#pragma once

#include <cstdint>

namespace asc::cpu {

// Calls f(i) for i in [0, count), on up to `threads` threads. Parts are taken as threads become free, hence must not
// depend on one another, nor on who runs them. f must not throw.
template <typename F>
void parallel_for([[maybe_unused]] int threads, int64_t count, F f) {
#ifndef __SANITIZE_THREAD__  // the sanitizer does not see that OpenMP's barriers order anything
  if (threads > 1 && count > 1) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int64_t i = 0; i < count; ++i) f(i);
    return;
  }
#endif
  for (int64_t i = 0; i < count; ++i) f(i);
}

// Part i of [0, n) in `parts` parts, which begin at multiples of `unit`.
struct Part {
  int64_t begin, end;
};
inline Part part_of(int64_t n, int64_t unit, int64_t parts, int64_t i) {
  const int64_t units = (n + unit - 1) / unit;
  const auto at = [&](int64_t k) {
    const int64_t x = units * k / parts * unit;
    return x < n ? x : n;
  };
  return {at(i), at(i + 1)};
}

}  // namespace asc::cpu
