// The simulated device: kernels compute nothing, and time is counted, not measured. What the scheduler does, in its
// order, is charged to a virtual clock, so that a profile of it depends on the program alone.
#pragma once

#include <cstddef>
#include <memory>

#include "backends/sim/costs.h"
#include "device/device.h"

namespace asc {

struct SimOptions {
  SimCosts costs;
  size_t memory_limit_bytes = 0;  // 0: no limit
};

// The clock runs while a profile is on. Every run ends with its host's wait for the device.
std::unique_ptr<Device> create_sim_device(const SimOptions& options = {});

}  // namespace asc
