// A device that a package brings, as a Device of ours.
#pragma once

#include <memory>
#include <string>

#include "device/device.h"

namespace asc {

class Plugin;

struct PluginOptions {
  int threads = 1;
  size_t memory_limit_bytes = 0;  // 0: no limit but the device's own
  std::string text;               // for the plug-in
};

// Opens the device. Throws DeviceError, DeviceUnavailableError.
std::unique_ptr<Device> create_plugin_device(const Plugin& plugin, const PluginOptions& options);

}  // namespace asc
