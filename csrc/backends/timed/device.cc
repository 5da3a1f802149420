#include "backends/timed/device.h"

#include <string>

#include "backends/timed/runner.h"
#include "base/error.h"
#include "device/host_device.h"
#include "device/ring_stream.h"
#include "kernel/empty_kernels.h"
#include "kernel/kernel.h"

namespace asc {

namespace {

constexpr int64_t kMaxTaskNs = 60'000'000'000;

DeviceInfo make_info(const TimedOptions& options) {
  DeviceInfo info;
  info.name = "timed";
  info.description =
      "every kernel takes " + std::to_string(options.task_ns) + " ns without a CPU; results are not meaningful";
  info.computes = false;
  info.can_run_inline = false;
  info.memory_limit_bytes = options.memory_limit_bytes;
  info.ring_capacity = options.ring_capacity;
  return info;
}

class TimedDevice final : public HostDevice {
 public:
  explicit TimedDevice(const TimedOptions& options) : HostDevice(make_info(options)), task_ns_(options.task_ns) {}

  const KernelRegistry& kernels() const override { return empty_kernels(); }
  const DeviceOptions& options() const override { return options_; }
  std::unique_ptr<Stream> create_stream() override {
    RingStream::Options options;
    options.ring_capacity = info().ring_capacity;
    options.can_run_inline = false;
    options.stamps_launches = true;
    return std::make_unique<RingStream>(options, std::make_unique<TimedRunner>(task_ns_));
  }

 private:
  const int64_t task_ns_;
  const DeviceOptions options_;
};

}  // namespace

std::unique_ptr<Device> create_timed_device(const TimedOptions& options) {
  if (options.task_ns < 0 || options.task_ns > kMaxTaskNs)
    throw DeviceError("[timed] task_ns out of range: " + std::to_string(options.task_ns) + "; give 0 to " +
                      std::to_string(kMaxTaskNs));
  return std::make_unique<TimedDevice>(options);
}

}  // namespace asc
