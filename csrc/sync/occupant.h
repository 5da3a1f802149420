// The thread that is inside a piece of code which one thread at a time enters. Only what a thread learns of itself is
// true for longer than the question.
#pragma once

#include <atomic>
#include <thread>

namespace asc {

class Occupant {
 public:
  void enter() { thread_.store(std::this_thread::get_id(), std::memory_order_relaxed); }
  void leave() { thread_.store(std::thread::id(), std::memory_order_relaxed); }
  bool is_this_thread() const { return thread_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }

 private:
  std::atomic<std::thread::id> thread_{};
};

}  // namespace asc
