// Puts a thread to sleep until a 32-bit word changes. A wake-up only uses the word's address, so the word may already
// be gone by then: that is what lets a waiter destroy an Event as soon as it sees it done, and a forked child destroy
// everything that a vanished thread was waiting on.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

namespace asc {

constexpr int64_t kNoDeadline = std::numeric_limits<int64_t>::max();

// Nanoseconds of the monotonic clock.
int64_t monotonic_ns();

// The deadline `timeout_ns` from now; kNoDeadline when it is negative or too large to add.
int64_t deadline_after(int64_t timeout_ns);

// Sleeps for about `ns`, without a CPU.
void sleep_ns(int64_t ns);

// Sleeps while `word` holds `expected`, at most until `deadline_ns` of the monotonic clock. May return early: callers
// look at their condition again.
void park(const std::atomic<uint32_t>& word, uint32_t expected, int64_t deadline_ns);

// Wakes every thread parked on the word at this address, which is never dereferenced.
void unpark_all(const std::atomic<uint32_t>* word);

}  // namespace asc
