// Exception classes of ascendsched. Set-up calls and waits throw them; hot paths return `Status` (device/task.h).
// Message form: "[where] what: values; next step".
#pragma once

#include <stdexcept>
#include <string>

namespace asc {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The model or the caller's input is malformed: Python ValueError.
class GraphError : public Error {
 public:
  using Error::Error;
};

// Compilation of a valid graph failed.
class PlanError : public Error {
 public:
  using Error::Error;
};

// A valid graph uses something that this package does not implement.
class UnsupportedError : public Error {
 public:
  using Error::Error;
};

// A device call or a kernel failed.
class DeviceError : public Error {
 public:
  using Error::Error;
};

class DeviceUnavailableError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

class OutOfMemoryError : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

class WaitTimeoutError : public Error {
 public:
  using Error::Error;
};

// A run was cancelled before it completed.
class RunCancelledError : public Error {
 public:
  using Error::Error;
};

}  // namespace asc
