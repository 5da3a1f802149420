// What the devices of this package share: memory and chains in host memory. A back end adds kernels, options and
// streams.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "device/device.h"
#include "device/memory.h"
#include "device/vector_chain.h"

namespace asc {

class HostDevice : public Device {
 public:
  // Throws DeviceError for a ring capacity out of range.
  explicit HostDevice(DeviceInfo info) : info_(std::move(info)), memory_(info_.name, info_.memory_limit_bytes) {
    if (info_.ring_capacity < 1 || info_.ring_capacity > kMaxRingCapacity)
      throw DeviceError("[" + info_.name + "] ring_capacity out of range: " + std::to_string(info_.ring_capacity) +
                        "; give 1 to " + std::to_string(kMaxRingCapacity));
  }

  const DeviceInfo& info() const override { return info_; }
  void* allocate(size_t bytes) override { return memory_.allocate(bytes); }
  void release(void* data, size_t bytes) override { memory_.release(data, bytes); }
  size_t used_bytes() const override { return memory_.used_bytes(); }
  std::unique_ptr<TaskChain> create_chain() override { return std::make_unique<VectorChain>(); }

 private:
  static constexpr size_t kMaxRingCapacity = size_t{1} << 20;

  const DeviceInfo info_;
  LimitedMemory memory_;
};

}  // namespace asc
