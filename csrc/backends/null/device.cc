#include "backends/null/device.h"

#include "device/host_device.h"
#include "device/ring_stream.h"
#include "kernel/empty_kernels.h"
#include "kernel/kernel.h"

namespace asc {

namespace {

constexpr uint32_t kMaxStreams = 8;

DeviceInfo make_info(const NullOptions& options) {
  DeviceInfo info;
  info.name = "null";
  info.description = "kernels do nothing; results are not meaningful";
  info.computes = false;
  info.has_fused_kernels = false;  // the cost of scheduling shows operator by operator
  info.can_run_inline = true;
  info.max_streams = kMaxStreams;
  info.memory_limit_bytes = options.memory_limit_bytes;
  info.ring_capacity = options.ring_capacity;
  return info;
}

class NullDevice final : public HostDevice {
 public:
  using HostDevice::HostDevice;

  const KernelRegistry& kernels() const override { return empty_kernels(); }
  const DeviceOptions& options() const override { return options_; }
  std::unique_ptr<Stream> create_stream(uint32_t number) override {
    RingStream::Options options;
    options.ring_capacity = info().ring_capacity;
    options.number = number;
    return std::make_unique<RingStream>(options, std::make_unique<Runner>(1));
  }

 private:
  const DeviceOptions options_;
};

}  // namespace

std::unique_ptr<Device> create_null_device(const NullOptions& options) {
  return std::make_unique<NullDevice>(make_info(options));
}

}  // namespace asc
