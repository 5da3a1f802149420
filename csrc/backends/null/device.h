// The null device: launches, streams and events are real, kernels do nothing. It shows what the host side alone costs.
#pragma once

#include <cstddef>
#include <memory>

#include "device/device.h"

namespace asc {

struct NullOptions {
  size_t ring_capacity = 1024;
  size_t memory_limit_bytes = 0;  // 0: no limit
};

// Throws DeviceError for a ring capacity out of range.
std::unique_ptr<Device> create_null_device(const NullOptions& options = {});

}  // namespace asc
