#include "bindings/unlocked.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/error.h"

namespace asc {
namespace {

// A long kernel cannot be stopped; that it computes while the process ends does no harm that is worth a longer wait.
constexpr std::chrono::seconds kMostPatience{1};

std::atomic<bool> is_ending{false};
std::thread::id ending_thread;  // set before is_ending
std::atomic<int> away{0};       // threads that work without the lock, wait for it, or hold it for a call

bool must_sleep() { return is_ending && std::this_thread::get_id() != ending_thread; }

// Threads that are not daemons have ended. Those that are away come back, or find that they must sleep.
void prepare_exit() {
  ending_thread = std::this_thread::get_id();
  is_ending = true;
  const Unlocked unlocked;
  const auto end = std::chrono::steady_clock::now() + kMostPatience;
  while (away > 1 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

Unlocked::Unlocked() : state_(PyEval_SaveThread()) { ++away; }

Unlocked::~Unlocked() {
  if (must_sleep()) {
    --away;
    while (true) pause();
  }
  PyEval_RestoreThread(state_);
  --away;
}

Locked::Locked() {
  ++away;
  if (must_sleep()) {
    --away;
    throw RunCancelledError("[run] Python ends; let threads that run models end before");
  }
  state_ = PyGILState_Ensure();
}

Locked::~Locked() {
  PyGILState_Release(state_);
  --away;
}

void bind_exit(py::module_&) { py::module_::import("atexit").attr("register")(py::cpp_function(&prepare_exit)); }

}  // namespace asc
