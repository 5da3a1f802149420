#include "runtime/devices.h"

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>

#include "backends/cpu/device.h"
#include "backends/null/device.h"
#include "backends/timed/device.h"
#include "sync/fork.h"

namespace asc {
namespace {

constexpr const char* kKnown = "known devices: cpu, null, timed, timed:us=N";

TimedOptions parse_timed(const std::string& options) {
  TimedOptions timed;
  if (options.empty()) return timed;
  char* end = nullptr;
  const double us = options.rfind("us=", 0) == 0 ? std::strtod(options.c_str() + 3, &end) : -1;
  if (!(us >= 0 && us <= 60e6) || !end || *end || end == options.c_str() + 3)
    throw DeviceError("[device] timed: option '" + options + "' is not understood; write timed:us=20");
  timed.task_ns = static_cast<int64_t>(us * 1000);
  return timed;
}

}  // namespace

std::unique_ptr<Device> create_device(const std::string& name, const DeviceSettings& settings) {
  const size_t colon = name.find(':');
  const std::string kind = name.substr(0, colon), options = colon == std::string::npos ? "" : name.substr(colon + 1);
  if (kind == "timed") {
    TimedOptions timed = parse_timed(options);
    timed.memory_limit_bytes = settings.memory_limit_bytes;
    return create_timed_device(timed);
  }
  if (!options.empty()) throw DeviceError("[device] " + kind + " takes no options, got '" + options + "'; " + kKnown);
  if (kind == "cpu") {
    CpuOptions cpu;
    cpu.threads = settings.threads;
    cpu.memory_limit_bytes = settings.memory_limit_bytes;
    cpu.use_onednn = settings.use_onednn;
    return create_cpu_device(cpu);
  }
  if (kind == "null") {
    NullOptions null;
    null.memory_limit_bytes = settings.memory_limit_bytes;
    return create_null_device(null);
  }
  throw DeviceUnavailableError("[device] '" + name + "' is not available; " + kKnown);
}

namespace {

struct Tilings {
  const uint32_t fork_generation;
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<TilingCache>> by_kind;
};

// Of this process. A forked child starts afresh, since another thread may have held a lock when it was forked; what
// it leaves behind, and the caches of a process that ends, are never destroyed.
Tilings& tilings() {
  static std::atomic<Tilings*> current{nullptr};
  Tilings* found = current;
  while (!found || found->fork_generation != fork_generation()) {
    std::unique_ptr<Tilings> fresh(new Tilings{fork_generation(), {}, {}});
    if (current.compare_exchange_strong(found, fresh.get())) found = fresh.release();
  }
  return *found;
}

}  // namespace

std::shared_ptr<TilingCache> shared_tilings(const std::string& name) {
  Tilings& all = tilings();
  std::lock_guard<std::mutex> lock(all.mutex);
  std::shared_ptr<TilingCache>& cache = all.by_kind[name.substr(0, name.find(':'))];
  if (!cache) cache = std::make_shared<TilingCache>();
  return cache;
}

std::vector<DeviceListing> list_devices() {
  std::vector<DeviceListing> list;
  for (const char* name : {"cpu", "null", "timed"}) {
    const DeviceInfo info = create_device(name, {})->info();
    list.push_back({info.name, info.description});
  }
  return list;
}

}  // namespace asc
