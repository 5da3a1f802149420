#include "device/event.h"

#include <utility>

#include "base/error.h"
#include "sync/fork.h"

namespace asc {

Event::Event() : fork_generation_(fork_generation()) {}

void Event::fail(uint32_t node, Status status, std::string what) {
  if (has_first_.exchange(true)) return;
  status_ = status;
  node_ = node;
  error_ = std::move(what);
  failed_ = true;
}

bool Event::wait(int64_t timeout_ns) const {
  if (is_done()) return true;
  if (fork_generation_ != fork_generation())
    throw DeviceError("[event.wait] the run was started before fork(); start it again in this process");
  return done_.wait(timeout_ns);
}

// A store costs many times what a look does, and nearly every run succeeds.
void Event::reset() {
  done_.reset();
  if (is_cancelled_) is_cancelled_ = false;
  fork_generation_ = fork_generation();
  if (!has_first_) return;
  has_first_ = failed_ = false;
  status_ = Status::kOk;
  node_ = 0;
  error_.clear();
}

}  // namespace asc
