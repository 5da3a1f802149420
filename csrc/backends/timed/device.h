// The timed device: every kernel takes a set time without using a CPU, as on an accelerator. It makes the overlap of
// host and device testable on a machine without one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "device/device.h"

namespace asc {

struct TimedOptions {
  int64_t task_ns = 20'000;       // per task, 0 to one minute
  int64_t tiling_ns = 0;          // CPU time that making a tiling takes at least
  int64_t launch_ns = 0;          // CPU time that a launch or a submit takes at least
  size_t ring_capacity = 256;     // small: back pressure sets in early
  size_t memory_limit_bytes = 0;  // 0: no limit
};

// Device time is accumulated, not measured: a task starts when its predecessor ended or when it was launched, whichever
// is later, and ends `task_ns` after. Spans carry these times exactly; events are signalled no earlier, and as much
// later as the system needs to wake a thread. Throws DeviceError for times or a ring capacity out of range.
std::unique_ptr<Device> create_timed_device(const TimedOptions& options = {});

}  // namespace asc
