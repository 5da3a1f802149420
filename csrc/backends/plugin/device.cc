#include "backends/plugin/device.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "backends/plugin/open_device.h"
#include "backends/plugin/plugin.h"
#include "backends/plugin/stream.h"

namespace asc {
namespace {

// What a device has given out and not taken back.
class Blocks {
 public:
  Blocks(const Plugin& plugin, size_t limit_bytes) : plugin_(plugin), limit_bytes_(limit_bytes) {}

  // Counts before the memory is there, so that several threads together stay below the limit.
  void reserve(size_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (limit_bytes_ && (used_bytes_ > limit_bytes_ || bytes > limit_bytes_ - used_bytes_))
      throw OutOfMemoryError("[device '" + plugin_.name() + "'] allocate: out of memory: asked " +
                             std::to_string(bytes) + " bytes, used " + std::to_string(used_bytes_) + " bytes, limit " +
                             std::to_string(limit_bytes_) + " bytes; raise memory_limit_bytes or run smaller inputs");
    used_bytes_ += bytes;
  }
  void give_back(size_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    used_bytes_ -= bytes;
  }
  // False where it overlaps what is given out.
  bool add(void* data, size_t bytes) {
    const auto at = reinterpret_cast<uintptr_t>(data);
    std::lock_guard<std::mutex> lock(mutex_);
    const auto next = blocks_.lower_bound(at);
    if (next != blocks_.end() && next->first - at < bytes) return false;
    if (next != blocks_.begin()) {
      const auto& [start, size] = *std::prev(next);
      if (at - start < size) return false;
    }
    blocks_[at] = bytes;
    return true;
  }
  void remove(void* data) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = blocks_.find(reinterpret_cast<uintptr_t>(data));
    used_bytes_ -= found->second;
    blocks_.erase(found);
  }
  size_t used_bytes() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return used_bytes_;
  }

 private:
  const Plugin& plugin_;
  const size_t limit_bytes_;
  mutable std::mutex mutex_;
  std::map<uintptr_t, size_t> blocks_;
  size_t used_bytes_ = 0;
};

DeviceInfo make_info(const Plugin& plugin, const asc_device_info& described, size_t limit_bytes) {
  DeviceInfo info;
  info.name = plugin.name();
  info.description = plugin.functions().description ? plugin.functions().description : "";
  info.threads = described.threads;
  info.computes = described.computes != 0;
  info.has_fused_kernels = false;
  const auto own = static_cast<size_t>(described.memory_limit_bytes);
  info.memory_limit_bytes = own && limit_bytes ? std::min(own, limit_bytes) : std::max(own, limit_bytes);
  return info;
}

class PluginDevice final : public Device {
 public:
  PluginDevice(std::shared_ptr<OpenDevice> device, const asc_device_info& described, size_t limit_bytes)
      : device_(std::move(device)),
        info_(make_info(device_->plugin(), described, limit_bytes)),
        deadline_ns_(described.deadline_ms * 1'000'000),
        blocks_(device_->plugin(), info_.memory_limit_bytes) {
    options_.threads = info_.threads;
  }

  const DeviceInfo& info() const override { return info_; }
  const KernelRegistry& kernels() const override { return device_->plugin().kernels(); }
  const DeviceOptions& options() const override { return options_; }
  size_t used_bytes() const override { return blocks_.used_bytes(); }

  void* allocate(size_t bytes) override {
    device_->require_same_process();
    const Plugin& plugin = device_->plugin();
    const size_t size = std::max<size_t>(bytes, 1);
    blocks_.reserve(size);
    void* data = nullptr;
    try {
      plugin.call("allocate", device_->functions().allocate, device_->handle(), size, &data);
      if (!data) plugin.fail("allocate", "it gave no memory for " + std::to_string(size) + " bytes");
      if (reinterpret_cast<uintptr_t>(data) % ASC_MEMORY_ALIGNMENT) {
        plugin.call_quietly(device_->functions().release, device_->handle(), data, size);
        plugin.fail("allocate", "its memory is not aligned to " + std::to_string(ASC_MEMORY_ALIGNMENT) + " bytes");
      }
      // Releasing it could free what somebody uses.
      if (!blocks_.add(data, size)) plugin.fail("allocate", "its memory overlaps what it gave before");
    } catch (...) {
      blocks_.give_back(size);
      throw;
    }
    return data;
  }
  void release(void* data, size_t bytes) override {
    if (!data) return;
    blocks_.remove(data);
    if (!device_->may_be_freed()) return;
    device_->plugin().call_quietly(device_->functions().release, device_->handle(), data, std::max<size_t>(bytes, 1));
  }

  std::unique_ptr<Stream> create_stream(uint32_t /*number*/) override {
    device_->require_same_process();
    return std::make_unique<PluginStream>(device_, deadline_ns_);
  }
  std::unique_ptr<TaskChain> create_chain() override { return std::make_unique<PluginChain>(device_); }

 private:
  const std::shared_ptr<OpenDevice> device_;
  const DeviceInfo info_;
  const int64_t deadline_ns_;
  DeviceOptions options_;
  Blocks blocks_;
};

}  // namespace

std::unique_ptr<Device> create_plugin_device(const Plugin& plugin, const PluginOptions& options) {
  asc_device_settings settings{};
  settings.size = sizeof settings;
  settings.threads = options.threads;
  settings.memory_limit_bytes = options.memory_limit_bytes;
  settings.options = options.text.c_str();
  auto device = std::make_shared<OpenDevice>(plugin, settings);
  const asc_device_info described = device->describe(options.threads);
  return std::make_unique<PluginDevice>(std::move(device), described, options.memory_limit_bytes);
}

}  // namespace asc
