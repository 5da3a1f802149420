#include "backends/sim/device.h"

#include <atomic>
#include <utility>

#include "backends/sim/stream.h"
#include "device/host_device.h"
#include "kernel/empty_kernels.h"

namespace asc {
namespace {

DeviceInfo make_info(const SimOptions& options) {
  DeviceInfo info;
  info.name = "sim";
  info.description = "kernels compute nothing; profiles are in virtual time, by a cost profile: sim:ascend-910b";
  info.computes = false;
  info.has_fused_kernels = false;  // as work is counted, operator by operator
  info.is_virtual = true;
  info.memory_limit_bytes = options.memory_limit_bytes;
  return info;
}

Status launch_sim(const Task& task, void* const* slots, Worker& worker) {
  const Tiling& inner = *static_cast<const SimTiling*>(task.tiling)->inner;
  Task empty = task;
  empty.tiling = &inner;
  return inner.launch(empty, slots, worker);
}

std::shared_ptr<const Tiling> make_sim_tiling(const TilingContext& ctx) {
  static std::atomic<uint64_t> made{0};
  auto tiling = std::make_shared<SimTiling>();
  tiling->implementation = "simulated";
  tiling->launch = launch_sim;
  tiling->inner = make_empty_tiling(ctx);
  tiling->work = work_of(ctx);
  tiling->number = ++made;
  return tiling;
}

const KernelRegistry& sim_kernels() {
  static const KernelRegistry registry = [] {
    KernelRegistry r;
    r.set_fallback(make_sim_tiling);
    return r;
  }();
  return registry;
}

class SimDevice final : public HostDevice {
 public:
  explicit SimDevice(const SimOptions& options) : HostDevice(make_info(options)), costs_(options.costs) {}

  const KernelRegistry& kernels() const override { return sim_kernels(); }
  const DeviceOptions& options() const override { return options_; }
  std::unique_ptr<Stream> create_stream(uint32_t) override { return std::make_unique<SimStream>(costs_); }

 private:
  const SimCosts costs_;
  const DeviceOptions options_;
};

}  // namespace

std::unique_ptr<Device> create_sim_device(const SimOptions& options) { return std::make_unique<SimDevice>(options); }

}  // namespace asc
