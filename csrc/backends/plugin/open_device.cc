#include "backends/plugin/open_device.h"

#include "backends/plugin/host.h"
#include "sync/fork.h"

namespace asc {
namespace {

constexpr int64_t kUsualDeadlineMs = 60'000;
constexpr int64_t kMaxDeadlineMs = 86'400'000;  // a day
constexpr int32_t kMaxThreads = 1'000'000;

}  // namespace

OpenDevice::OpenDevice(const Plugin& plugin, const asc_device_settings& settings)
    : plugin_(plugin), fork_generation_(fork_generation()) {
  plugin_.call("open", functions().open, &plugin_host(), &settings, &handle_);
  if (!handle_) plugin_.fail("open", "it gave no device");
}

OpenDevice::~OpenDevice() {
  if (may_be_freed()) plugin_.call_quietly(functions().close, handle_);
}

asc_device_info OpenDevice::describe(int threads) const {
  asc_device_info info{};
  info.size = sizeof info;
  info.threads = threads;
  info.computes = 1;
  info.deadline_ms = kUsualDeadlineMs;
  plugin_.call("describe", functions().describe, handle_, &info);
  if (info.threads < 1 || info.threads > kMaxThreads)
    plugin_.fail("describe", std::to_string(info.threads) + " threads, expected 1 or more");
  if (info.deadline_ms < 1 || info.deadline_ms > kMaxDeadlineMs)
    plugin_.fail("describe", "a deadline of " + std::to_string(info.deadline_ms) + " ms, expected 1 to " +
                                 std::to_string(kMaxDeadlineMs));
  return info;
}

void OpenDevice::require_same_process() const {
  if (!is_of_this_process())
    throw DeviceError("[device '" + plugin_.name() +
                      "'] it was opened before fork(); compile the model again in this process");
}

bool OpenDevice::is_of_this_process() const { return fork_generation_ == fork_generation(); }

bool OpenDevice::may_be_freed() const { return !is_lost_ && is_of_this_process(); }

}  // namespace asc
