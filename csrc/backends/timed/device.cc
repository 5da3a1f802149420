#include "backends/timed/device.h"

#include <string>

#include "backends/timed/runner.h"
#include "base/error.h"
#include "device/host_device.h"
#include "device/ring_stream.h"
#include "kernel/empty_kernels.h"
#include "kernel/kernel.h"
#include "sync/spin.h"

namespace asc {

namespace {

constexpr int64_t kMaxTaskNs = 60'000'000'000;
constexpr uint32_t kMaxStreams = 8;

DeviceInfo make_info(const TimedOptions& options) {
  DeviceInfo info;
  info.name = "timed";
  info.description =
      "every kernel takes " + std::to_string(options.task_ns) + " ns without a CPU; results are not meaningful";
  info.computes = false;
  info.has_fused_kernels = false;  // the cost of scheduling shows operator by operator
  info.can_run_inline = false;
  info.max_streams = kMaxStreams;
  info.task_ns = options.task_ns;
  info.memory_limit_bytes = options.memory_limit_bytes;
  info.ring_capacity = options.ring_capacity;
  return info;
}

std::shared_ptr<const Tiling> make_slow_tiling(const TilingContext& ctx) {
  spin_for(ctx.options().tiling_ns);
  return make_empty_tiling(ctx);
}

const KernelRegistry& slow_kernels() {
  static const KernelRegistry registry = [] {
    KernelRegistry r;
    r.set_fallback(make_slow_tiling);
    return r;
  }();
  return registry;
}

DeviceOptions make_options(const TimedOptions& options) {
  DeviceOptions o;
  o.tiling_ns = options.tiling_ns;
  return o;
}

class TimedDevice final : public HostDevice {
 public:
  explicit TimedDevice(const TimedOptions& options)
      : HostDevice(make_info(options)), timed_(options), options_(make_options(options)) {}

  const KernelRegistry& kernels() const override { return timed_.tiling_ns ? slow_kernels() : empty_kernels(); }
  const DeviceOptions& options() const override { return options_; }
  std::unique_ptr<Stream> create_stream(uint32_t number) override {
    RingStream::Options options;
    options.ring_capacity = info().ring_capacity;
    options.can_run_inline = false;
    options.number = number;
    options.launch_ns = timed_.launch_ns;
    options.is_lazy = true;
    options.stamps_launches = true;
    return std::make_unique<RingStream>(options, std::make_unique<TimedRunner>(timed_.task_ns));
  }

 private:
  const TimedOptions timed_;
  const DeviceOptions options_;
};

}  // namespace

std::unique_ptr<Device> create_timed_device(const TimedOptions& options) {
  for (int64_t ns : {options.task_ns, options.tiling_ns, options.launch_ns})
    if (ns < 0 || ns > kMaxTaskNs)
      throw DeviceError("[timed] time out of range: " + std::to_string(ns) + " ns; give 0 to " +
                        std::to_string(kMaxTaskNs));
  return std::make_unique<TimedDevice>(options);
}

}  // namespace asc
