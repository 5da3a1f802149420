// Devices by name: the one place that knows which back ends are built in.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.h"
#include "schedule/tiling_cache.h"

namespace asc {

struct DeviceSettings {
  int threads = 1;
  size_t memory_limit_bytes = 0;
  bool use_onednn = true;
};

// "cpu", "null", "timed", "timed:us=20" (time per task), "sim", "sim:launch_us=4" (see SimCosts), or a registered
// plug-in's name, with options of its own behind a colon. Throws DeviceUnavailableError for an unknown name,
// DeviceError for a malformed option.
std::unique_ptr<Device> create_device(const std::string& name, const DeviceSettings& settings);

// The tiling cache of all devices of this kind ("cpu" for "cpu", "timed" for "timed:us=20") in this process.
std::shared_ptr<TilingCache> shared_tilings(const std::string& name);

struct DeviceListing {
  std::string name, description;
};
// As they are with so many threads.
std::vector<DeviceListing> list_devices(int threads);

}  // namespace asc
