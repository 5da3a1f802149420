// The CPU device: kernels on the stream's thread, or on the caller's when it runs inline.
#pragma once

#include <cstddef>
#include <memory>

#include "device/device.h"

namespace asc {

struct CpuOptions {
  int threads = 1;                // intra-op threads of a kernel
  size_t memory_limit_bytes = 0;  // 0: no limit
  bool use_onednn = true;
  size_t ring_capacity = 1024;
};

// Throws DeviceError for a number of threads below 1 and a ring capacity out of range.
std::unique_ptr<Device> create_cpu_device(const CpuOptions& options = {});

// All CPU kernels. Built once, thread-safe; also computes host values and folds constants, whatever the device.
const KernelRegistry& cpu_kernels();

}  // namespace asc
