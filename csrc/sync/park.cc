#include "sync/park.h"

#include <chrono>
#include <thread>

#include "sync/spin.h"

#if defined(__linux__) && !defined(ASC_NO_FUTEX)
#define ASC_USE_FUTEX 1
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>
#else
#define ASC_USE_FUTEX 0
#include <condition_variable>
#include <mutex>
#endif

namespace asc {

int64_t monotonic_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void sleep_ns(int64_t ns) { std::this_thread::sleep_for(std::chrono::nanoseconds(ns)); }

int64_t deadline_after(int64_t timeout_ns) {
  int64_t deadline;
  if (timeout_ns < 0 || __builtin_add_overflow(monotonic_ns(), timeout_ns, &deadline)) return kNoDeadline;
  return deadline;
}

int64_t default_spin_ns() {
  static const int64_t spin_ns = std::thread::hardware_concurrency() > 1 ? 40'000 : 0;
  return spin_ns;
}

#if ASC_USE_FUTEX

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t), "a futex needs the plain word");

void park(const std::atomic<uint32_t>& word, uint32_t expected, int64_t deadline_ns) {
  // FUTEX_WAIT_BITSET takes an absolute time of the monotonic clock; FUTEX_WAIT takes a relative one.
  timespec until;
  until.tv_sec = static_cast<time_t>(deadline_ns / 1'000'000'000);
  until.tv_nsec = static_cast<long>(deadline_ns % 1'000'000'000);
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
          deadline_ns == kNoDeadline ? nullptr : &until, nullptr, FUTEX_BITSET_MATCH_ANY);
}

void unpark_all(const std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, nullptr, nullptr, 0);
}

#else

namespace {

// Parked threads wait on one of a few process-wide lots, chosen by address. Never destroyed: threads may outlive main.
struct Lot {
  std::mutex mutex;
  std::condition_variable changed;
};

Lot& lot_of(const void* word) {
  static Lot* lots = new Lot[64];
  return lots[(reinterpret_cast<uintptr_t>(word) / sizeof(uint64_t)) % 64];
}

}  // namespace

void park(const std::atomic<uint32_t>& word, uint32_t expected, int64_t deadline_ns) {
  Lot& lot = lot_of(&word);
  std::unique_lock<std::mutex> lock(lot.mutex);
  // The waker changes the word before it takes the mutex, so a change is either seen here or announced after the wait.
  if (word.load(std::memory_order_acquire) != expected) return;
  if (deadline_ns == kNoDeadline)
    lot.changed.wait(lock);
  else
    lot.changed.wait_until(lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(deadline_ns)));
}

void unpark_all(const std::atomic<uint32_t>* word) {
  Lot& lot = lot_of(word);
  std::lock_guard<std::mutex> lock(lot.mutex);
  lot.changed.notify_all();
}

#endif

}  // namespace asc
