// Devices that packages bring, in C: what is registered, and how their functions are called.
#pragma once

#include <ascendsched/device.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "kernel/kernel.h"

namespace asc {

// A registered device. Lives as long as the process.
class Plugin {
 public:
  // Throws DeviceError for another version, or a device that lacks a part.
  explicit Plugin(const asc_device* device);

  const asc_device& functions() const { return functions_; }
  const std::string& name() const { return name_; }
  const KernelRegistry& kernels() const { return kernels_; }
  bool is_of(const asc_device* device) const { return source_ == device; }

  // "[device 'name'] function: what; next step"
  std::string complaint(const char* function, const std::string& what) const;
  [[noreturn]] void fail(const char* function, const std::string& what) const {
    throw DeviceError(complaint(function, what));
  }

  // Calls a function that returns a status. Throws DeviceError, or what else the status stands for.
  template <typename... Parameters, typename... Arguments>
  void call(const char* name, int (*function)(Parameters...), Arguments... arguments) const {
    char error[ASC_ERROR_BYTES] = "";
    int status = ASC_OK;
    try {
      status = function(arguments..., error);
    } catch (...) {  // a C++ function behind the C interface
      fail(name, "it threw an exception, which it must not");
    }
    if (__builtin_expect(status != ASC_OK, 0)) raise(name, status, error);
  }
  // Calls a function that cannot fail. Nothing is thrown: it runs in destructors.
  template <typename... Parameters, typename... Arguments>
  void call_quietly(void (*function)(Parameters...), Arguments... arguments) const noexcept {
    try {
      function(arguments...);
    } catch (...) {  // nobody is left to be told
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const;
  [[noreturn]] void raise(const char* function, int status, char* error) const;
  void check_name();
  void check_functions() const;
  void add_kernels();

  const asc_device* const source_;
  asc_device functions_{};
  std::string name_ = "?";
  KernelRegistry kernels_;
};

}  // namespace asc
