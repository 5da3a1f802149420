// A named thread that its owner joins.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

namespace asc {

// start() and join() belong to one owner, who makes `body` return before join() or the destructor. In a child forked
// after start() the thread does not exist: nothing is joined there.
class Thread {
 public:
  Thread() = default;
  ~Thread() { join(); }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  // `name` (at most 15 characters) is what debuggers and `top -H` show. `body` must not throw. The thread blocks
  // asynchronous signals, so that they reach the application's own threads. Throws DeviceError when the system refuses
  // a thread.
  void start(const char* name, std::function<void()> body);
  // For the body of a thread whose work can wait: waking it takes no CPU from whoever wakes it.
  static void yield_to_others();
  bool is_started() const { return thread_ != nullptr; }
  void join();
  // CPU time that the thread has used, in nanoseconds; 0 where it is not running or the system does not tell.
  int64_t cpu_ns() const;

 private:
  std::unique_ptr<std::thread> thread_;
  uint32_t generation_ = 0;
};

}  // namespace asc
