// A plug-in's device while it is open; shared by its streams and chains.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "backends/plugin/plugin.h"

namespace asc {

struct DeviceInfo;

class OpenDevice {
 public:
  // Throws DeviceError, DeviceUnavailableError.
  OpenDevice(const Plugin& plugin, const asc_device_settings& settings);
  ~OpenDevice();
  OpenDevice(const OpenDevice&) = delete;
  OpenDevice& operator=(const OpenDevice&) = delete;

  const Plugin& plugin() const { return plugin_; }
  const asc_device& functions() const { return plugin_.functions(); }
  void* handle() const { return handle_; }
  // Asks the device about itself. Throws DeviceError for answers that make no sense.
  asc_device_info describe(int threads) const;
  // Throws DeviceError in a child process that was forked after it was opened.
  void require_same_process() const;
  bool is_of_this_process() const;
  // False in such a child, and where a stream was lost: what may still run must be left alone.
  bool may_be_freed() const;
  void note_lost() { is_lost_ = true; }

 private:
  const Plugin& plugin_;
  const uint32_t fork_generation_;
  std::atomic<bool> is_lost_{false};
  void* handle_ = nullptr;
};

}  // namespace asc
