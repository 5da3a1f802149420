// Bounded queue from one producer thread to one consumer thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace asc {

constexpr size_t kCacheLine = 64;

// Elements leave in the order in which they came. No function blocks: pair a ring with a Waiter to sleep. Each side may
// move to another thread when that hand-over itself synchronises. Indices count up for ever; each side keeps a stale
// copy of the other's index and refreshes it only when the ring looks full or empty, so that in the steady state a
// cache line moves once per batch, not once per element.
//
// `Atomic` is a parameter so that tests can disturb the schedule at every access.
template <typename T, template <typename> class Atomic = std::atomic>
class Ring {
  static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>,
                "a throwing move would leave a slot half made");

 public:
  // Throws Error for capacity 0 or above 2^31.
  explicit Ring(size_t capacity)
      : capacity_(check(capacity)), mask_(slot_count(capacity) - 1), slots_(new Slot[mask_ + 1]) {}
  // By the last user, when both sides have stopped.
  ~Ring() {
    while (front()) pop_front();
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // --- producer ------------------------------------------------------------------------------------------------
  // False, and `value` untouched, when the ring is full or closed.
  bool try_push(T&& value) { return emplace(std::move(value)); }
  bool try_push(const T& value) { return emplace(value); }
  // Number of elements pushed so far.
  uint64_t pushed() const { return tail_.load(std::memory_order_relaxed); }

  // --- consumer ------------------------------------------------------------------------------------------------
  // The oldest element, in place until pop_front(); null when the ring is empty.
  T* front() {
    const uint64_t head = head_.load(std::memory_order_relaxed);
    return head != cached_tail_ || refresh_tail() != head ? slot(head) : nullptr;
  }
  // Whether no element follows front(), as far as can be seen now.
  bool is_last() {
    const uint64_t next = head_.load(std::memory_order_relaxed) + 1;
    return next == cached_tail_ && refresh_tail() == next;
  }
  // Destroys front() and frees its slot. Only after front() returned an element.
  void pop_front() {
    const uint64_t head = head_.load(std::memory_order_relaxed);
    slot(head)->~T();
    head_.store(head + 1, std::memory_order_release);
  }
  bool try_pop(T& out) { return try_pop_batch(&out, 1) == 1; }
  // Moves up to `max` elements to `out` and frees their slots at once; returns their number.
  size_t try_pop_batch(T* out, size_t max) {
    const uint64_t head = head_.load(std::memory_order_relaxed);
    uint64_t ready = cached_tail_ - head;
    if (ready < max) ready = refresh_tail() - head;
    const size_t count = ready < max ? static_cast<size_t>(ready) : max;
    for (size_t i = 0; i < count; ++i) {
      out[i] = std::move(*slot(head + i));
      slot(head + i)->~T();
    }
    if (count) head_.store(head + count, std::memory_order_release);
    return count;
  }

  // --- any thread ----------------------------------------------------------------------------------------------
  // No push succeeds after the producer has seen it. Whoever sees it closed sees every push that preceded.
  void close() { closed_.store(true, std::memory_order_release); }
  bool is_closed() const { return closed_.load(std::memory_order_acquire); }
  // Whether every element pushed before has been popped; what the consumer did before pop_front() is visible then.
  bool is_empty() const {
    const uint64_t head = head_.load(std::memory_order_acquire);
    return head == tail_.load(std::memory_order_acquire);
  }
  // Number of elements popped so far; what the consumer did before is visible then.
  uint64_t popped() const { return head_.load(std::memory_order_acquire); }
  // Closed and empty: the consumer is done.
  bool is_drained() const { return is_closed() && is_empty(); }
  size_t capacity() const { return capacity_; }

 private:
  using Slot = std::aligned_storage_t<sizeof(T), alignof(T)>;

  static size_t check(size_t capacity) {
    if (capacity == 0 || capacity > (size_t{1} << 31))
      throw Error("[ring] capacity out of range: " + std::to_string(capacity) + "; give 1 to 2147483648");
    return capacity;
  }
  static size_t slot_count(size_t capacity) {
    size_t n = 1;
    while (n < capacity) n *= 2;
    return n;
  }
  T* slot(uint64_t index) { return std::launder(reinterpret_cast<T*>(&slots_[index & mask_])); }
  uint64_t refresh_tail() { return cached_tail_ = tail_.load(std::memory_order_acquire); }

  template <typename V>
  bool emplace(V&& value) {
    if (is_closed()) return false;
    const uint64_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - cached_head_ == capacity_) {
      cached_head_ = head_.load(std::memory_order_acquire);
      if (tail - cached_head_ == capacity_) return false;
    }
    new (&slots_[tail & mask_]) T(std::forward<V>(value));
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  // Constant after construction, and the flag that changes once.
  const size_t capacity_;
  const size_t mask_;
  const std::unique_ptr<Slot[]> slots_;
  Atomic<bool> closed_{false};
  // Written by the producer.
  alignas(kCacheLine) Atomic<uint64_t> tail_{0};
  uint64_t cached_head_ = 0;
  // Written by the consumer.
  alignas(kCacheLine) Atomic<uint64_t> head_{0};
  uint64_t cached_tail_ = 0;
};

}  // namespace asc
