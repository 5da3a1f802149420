#include "backends/cpu/device.h"

#include <algorithm>
#include <string>

#include "backends/cpu/conv_last.h"
#include "backends/cpu/kernels.h"
#include "base/error.h"
#include "device/host_device.h"
#include "device/ring_stream.h"
#include "kernel/kernel.h"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace asc {

namespace {

// OpenMP keeps its number of threads per calling thread: ours is set on the executor once, and on a caller's thread
// only while it runs inline, since other libraries of the process share the setting.
class CpuRunner final : public Runner {
 public:
  explicit CpuRunner(int threads) : Runner(threads), threads_(threads) {}

#if defined(_OPENMP)
  void on_thread_start() override { omp_set_num_threads(threads_); }
  void on_begin_inline() override {
    caller_threads_ = omp_get_max_threads();
    if (caller_threads_ != threads_) omp_set_num_threads(threads_);
  }
  void on_end_inline() override {
    if (caller_threads_ != threads_) omp_set_num_threads(caller_threads_);
  }
#endif

 private:
  const int threads_;
  int caller_threads_ = 0;
};

constexpr uint32_t kMaxStreams = 8;
constexpr int64_t kWakeNs = 50'000;  // measured: 65 to 75 us where the CPU had halted, a few where it had not

DeviceInfo make_info(const CpuOptions& options) {
  DeviceInfo info;
  info.name = "cpu";
  info.description = "CPU, " + std::to_string(options.threads) + (options.threads == 1 ? " thread" : " threads");
  info.threads = options.threads;
  info.can_scatter_in_place = true;
  info.can_run_inline = true;
  info.wants_channels_last = options.use_onednn && cpu::has_conv_last();
  info.max_streams = std::min<uint32_t>(static_cast<uint32_t>(options.threads), kMaxStreams);
  info.wake_ns = kWakeNs;
  info.memory_limit_bytes = options.memory_limit_bytes;
  info.ring_capacity = options.ring_capacity;
  return info;
}

class CpuDevice final : public HostDevice {
 public:
  explicit CpuDevice(const CpuOptions& options)
      : HostDevice(make_info(options)), options_{options.threads, options.use_onednn} {}

  const KernelRegistry& kernels() const override { return cpu_kernels(); }
  const DeviceOptions& options() const override { return options_; }
  std::unique_ptr<Stream> create_stream(uint32_t number) override {
    RingStream::Options options;
    options.ring_capacity = info().ring_capacity;
    options.number = number;
    return std::make_unique<RingStream>(options, std::make_unique<CpuRunner>(info().threads));
  }

 private:
  const DeviceOptions options_;
};

KernelRegistry make_registry() {
  KernelRegistry registry;
  register_elementwise_kernels(registry);
  register_movement_kernels(registry);
  register_reduce_kernels(registry);
  register_matmul_kernels(registry);
  register_nn_kernels(registry);
  register_quantize_kernels(registry);
  register_image_kernels(registry);
  register_signal_kernels(registry);
  register_fused_kernels(registry);
  register_extension_kernels(registry);
  return registry;
}

}  // namespace

std::unique_ptr<Device> create_cpu_device(const CpuOptions& options) {
  if (options.threads < 1)
    throw DeviceError("[cpu] threads must be at least 1: " + std::to_string(options.threads) +
                      "; leave it unset for "
                      "the default");
  return std::make_unique<CpuDevice>(options);
}

const KernelRegistry& cpu_kernels() {
  static const KernelRegistry registry = make_registry();
  return registry;
}

}  // namespace asc
