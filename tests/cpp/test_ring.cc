// The ring: lifetime, order, wrap-around, close, and two threads on a disturbed schedule. The waiter and the latch that
// threads sleep on.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sync/latch.h"
#include "sync/ring.h"
#include "sync/thread.h"
#include "sync/waiter.h"

namespace {

using asc::Ring;

constexpr int64_t kDeadlineNs = 30'000'000'000;

// Counts how many of its kind are alive.
struct Tracked {
  static int alive;
  int value;
  explicit Tracked(int v) : value(v) { ++alive; }
  Tracked(Tracked&& o) noexcept : value(o.value) { ++alive; }
  Tracked& operator=(Tracked&& o) noexcept {
    value = o.value;
    return *this;
  }
  ~Tracked() { --alive; }
};
int Tracked::alive = 0;

// An atomic that gives up the CPU now and then around every access, by a seeded sequence per thread.
struct Jitter {
  static thread_local uint64_t state;
  static void step() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    if ((state >> 60) == 0) std::this_thread::yield();
  }
};
thread_local uint64_t Jitter::state = 1;

template <typename T>
struct JitterAtomic : std::atomic<T> {
  using std::atomic<T>::atomic;
  template <typename Order>
  T load(Order order) const {
    Jitter::step();
    return std::atomic<T>::load(order);
  }
  template <typename Order>
  void store(T v, Order order) {
    Jitter::step();
    std::atomic<T>::store(v, order);
    Jitter::step();
  }
};

// Pushes 0..count-1 from a second thread and checks that they arrive in order, popped in batches of `batch`.
template <typename R>
void check_sequence(R& ring, uint64_t count, size_t batch, uint64_t seed) {
  asc::Thread producer;
  producer.start("producer", [&ring, count, seed] {
    Jitter::state = seed;
    for (uint64_t i = 0; i < count;)
      if (ring.try_push(i))
        ++i;
      else
        std::this_thread::yield();
    ring.close();
  });
  Jitter::state = seed + 1;
  std::vector<uint64_t> out(batch);
  uint64_t expected = 0, wrong = 0;
  while (!ring.is_drained()) {
    const size_t n = ring.try_pop_batch(out.data(), batch);
    for (size_t i = 0; i < n; ++i) wrong += out[i] != expected++;
    if (n == 0) std::this_thread::yield();
  }
  CHECK(wrong == 0);
  CHECK(expected == count);
}

}  // namespace

TEST_CASE("a ring holds exactly its capacity and gives elements back in order") {
  for (size_t capacity : {1, 2, 3, 5, 8, 13}) {
    CAPTURE(capacity);
    Ring<int> ring(capacity);
    CHECK(ring.is_empty());
    CHECK(ring.front() == nullptr);
    for (int i = 0; i < static_cast<int>(capacity); ++i) CHECK(ring.try_push(i));
    CHECK_FALSE(ring.try_push(99));
    int v = -1;
    for (int i = 0; i < static_cast<int>(capacity); ++i) {
      CHECK(ring.try_pop(v));
      CHECK(v == i);
    }
    CHECK_FALSE(ring.try_pop(v));
  }
}

TEST_CASE("a ring wraps around many times at every fill level") {
  Ring<uint64_t> ring(5);
  uint64_t in = 0, out = 0;
  for (int round = 0; round < 1000; ++round) {
    const int n = round % 6;
    for (int i = 0; i < n; ++i) REQUIRE(ring.try_push(in++));
    for (int i = 0; i < n; ++i) {
      REQUIRE(ring.front());
      CHECK(ring.is_last() == (i == n - 1));
      REQUIRE(*ring.front() == out++);
      ring.pop_front();
    }
  }
  CHECK(ring.pushed() == in);
}

TEST_CASE("a batch pop takes what is there, across the wrap, and no more than asked") {
  Ring<int> ring(4);
  int out[8];
  for (int i = 0; i < 3; ++i) ring.try_push(i);
  CHECK(ring.try_pop_batch(out, 2) == 2);
  for (int i = 3; i < 6; ++i) CHECK(ring.try_push(i));
  CHECK_FALSE(ring.try_push(6));
  CHECK(ring.try_pop_batch(out, 8) == 4);
  CHECK(out[0] == 2);
  CHECK(out[3] == 5);
  CHECK(ring.try_pop_batch(out, 8) == 0);
}

TEST_CASE("elements are destroyed when popped, and those left over with the ring") {
  {
    Ring<Tracked> ring(4);
    for (int i = 0; i < 4; ++i) ring.try_push(Tracked(i));
    CHECK(Tracked::alive == 4);
    REQUIRE(ring.front());
    ring.pop_front();
    CHECK(Tracked::alive == 3);
    Tracked out(0);
    CHECK(ring.try_pop(out));
    CHECK(out.value == 1);
    CHECK(Tracked::alive == 3);
  }
  CHECK(Tracked::alive == 0);
}

TEST_CASE("a push that fails leaves its value alone") {
  Ring<std::unique_ptr<int>> ring(1);
  CHECK(ring.try_push(std::make_unique<int>(1)));
  auto kept = std::make_unique<int>(2);
  CHECK_FALSE(ring.try_push(std::move(kept)));
  REQUIRE(kept);
  CHECK(*kept == 2);
}

TEST_CASE("a closed ring refuses pushes and still gives out what it holds") {
  Ring<int> ring(4);
  ring.try_push(7);
  ring.close();
  CHECK(ring.is_closed());
  CHECK_FALSE(ring.is_drained());
  CHECK_FALSE(ring.try_push(8));
  int v = 0;
  CHECK(ring.try_pop(v));
  CHECK(v == 7);
  CHECK(ring.is_drained());
}

TEST_CASE("a ring refuses a capacity of zero") { CHECK_THROWS_AS(Ring<int>(0), asc::Error); }

TEST_CASE("two threads see one sequence") {
  for (size_t capacity : {1, 3, 64}) {
    CAPTURE(capacity);
    Ring<uint64_t> ring(capacity);
    check_sequence(ring, 100'000, capacity, 1);
  }
}

TEST_CASE("two threads see one sequence on disturbed schedules") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Ring<uint64_t, JitterAtomic> ring(1 + seed % 7);
    check_sequence(ring, 2'000, 1 + seed % 3, seed);
  }
}

TEST_CASE("a waiter never loses a wake-up, spinning or parked") {
  for (int64_t spin_ns : {0, 1'000, 40'000}) {
    CAPTURE(spin_ns);
    asc::Waiter ping(spin_ns), pong(spin_ns);
    std::atomic<int> at{0};
    constexpr int kRounds = 2'000;
    asc::Thread other;
    other.start("pong", [&] {
      for (int i = 0; i < kRounds; ++i) {
        if (!ping.wait([&] { return at == 2 * i + 1; }, kDeadlineNs)) return;
        at = 2 * i + 2;
        pong.wake();
      }
    });
    bool all = true;
    for (int i = 0; i < kRounds && all; ++i) {
      at = 2 * i + 1;
      ping.wake();
      all = pong.wait([&] { return at == 2 * i + 2; }, kDeadlineNs);
    }
    CHECK(all);
  }
}

TEST_CASE("a wake-up reaches every parked thread") {
  asc::Waiter waiter(0);
  std::atomic<bool> go{false};
  std::atomic<int> passed{0};
  {
    asc::Thread threads[3];
    for (asc::Thread& t : threads)
      t.start("waiter", [&] { passed += waiter.wait([&] { return go.load(); }, kDeadlineNs); });
    go = true;
    waiter.wake();
  }
  CHECK(passed == 3);
}

TEST_CASE("a wait ends at its deadline") {
  asc::Waiter waiter;
  CHECK_FALSE(waiter.wait([] { return false; }, 0));
  CHECK_FALSE(waiter.wait([] { return false; }, 1'000'000));
  asc::Latch latch;
  CHECK_FALSE(latch.wait(0));
  CHECK_FALSE(latch.wait(1'000'000));
  latch.open();
  CHECK(latch.wait(0));
  CHECK(latch.wait(-1));
}

TEST_CASE("a latch may be destroyed by whoever saw it open") {
  for (int i = 0; i < 2'000; ++i) {
    auto latch = std::make_unique<asc::Latch>();
    asc::Thread opener;
    std::atomic<asc::Latch*> shared{latch.get()};
    opener.start("opener", [&shared] { shared.load()->open(); });
    REQUIRE(latch->wait(kDeadlineNs));
    latch.reset();
  }
}
