// Python's lock, given up while the core works and taken while it calls Python, as pybind11's classes do, but for the
// end of the process: Python ends a daemon thread that wants the lock then by unwinding its stack, which aborts where
// that is C++. Here the thread sleeps instead, for ever.
#pragma once

#include "bindings/module.h"

namespace asc {

// Constructed with the lock, destroyed with it.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

// Constructed without the lock, or with it. Throws RunCancelledError in a daemon thread once Python ends.
class Locked {
 public:
  Locked();
  ~Locked();
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
};

// Has Python call what daemon threads need at its end.
void bind_exit(py::module_& m);

}  // namespace asc
