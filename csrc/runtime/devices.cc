#include "runtime/devices.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>

#include "backends/cpu/device.h"
#include "backends/null/device.h"
#include "backends/plugin/device.h"
#include "backends/plugin/registry.h"
#include "backends/sim/device.h"
#include "backends/timed/device.h"
#include "sync/fork.h"

namespace asc {
namespace {

std::string known_devices() {
  std::string text = "known devices: cpu, null, sim, timed, timed:us=N,tiling=N,launch=N";
  for (const PluginListing& plugin : list_plugins()) text += ", " + plugin.name;
  return text;
}

// "name=number,name=number": calls accept(name, number), and throws DeviceError where that or the number is refused.
template <typename Accept>
void parse_options(const std::string& kind, const std::string& options, const char* example, Accept accept) {
  for (size_t at = 0; at < options.size();) {
    const size_t end = std::min(options.find(',', at), options.size());
    const std::string part = options.substr(at, end - at), name = part.substr(0, part.find('='));
    const char* text = part.c_str() + std::min(name.size() + 1, part.size());
    char* rest = nullptr;
    const double number = std::strtod(text, &rest);
    if (rest == text || *rest || !accept(name, number))
      throw DeviceError("[device] " + kind + ": option '" + part + "' is not understood; write " + example);
    at = end + 1;
  }
}

TimedOptions parse_timed(const std::string& options) {
  TimedOptions timed;
  parse_options("timed", options, "timed:us=20,tiling=5,launch=5", [&](const std::string& name, double us) {
    int64_t* field = name == "us"       ? &timed.task_ns
                     : name == "tiling" ? &timed.tiling_ns
                     : name == "launch" ? &timed.launch_ns
                                        : nullptr;
    if (!field || !(us >= 0 && us <= 60e6)) return false;
    *field = static_cast<int64_t>(us * 1000);
    return true;
  });
  return timed;
}

SimOptions parse_sim(const std::string& options) {
  SimOptions sim;
  parse_options("sim", options, "sim:launch_us=4,tiling_us=10",
                [&](const std::string& name, double value) { return sim.costs.set(name, value); });
  return sim;
}

}  // namespace

std::unique_ptr<Device> create_device(const std::string& name, const DeviceSettings& settings) {
  const size_t colon = name.find(':');
  const std::string kind = name.substr(0, colon), options = colon == std::string::npos ? "" : name.substr(colon + 1);
  if (const Plugin* plugin = find_plugin(kind))
    return create_plugin_device(*plugin, {settings.threads, settings.memory_limit_bytes, options});
  if (kind == "timed") {
    TimedOptions timed = parse_timed(options);
    timed.memory_limit_bytes = settings.memory_limit_bytes;
    return create_timed_device(timed);
  }
  if (kind == "sim") {
    SimOptions sim = parse_sim(options);
    sim.memory_limit_bytes = settings.memory_limit_bytes;
    return create_sim_device(sim);
  }
  if (!options.empty())
    throw DeviceError("[device] " + kind + " takes no options, got '" + options + "'; " + known_devices());
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
  throw DeviceUnavailableError("[device] '" + name + "' is not available; " + known_devices());
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

std::vector<DeviceListing> list_devices(int threads) {
  std::vector<DeviceListing> list;
  DeviceSettings settings;
  settings.threads = threads;
  for (const char* name : {"cpu", "null", "sim", "timed"}) {
    const DeviceInfo info = create_device(name, settings)->info();
    list.push_back({info.name, info.description});
  }
  for (const PluginListing& plugin : list_plugins()) list.push_back({plugin.name, plugin.description});
  return list;
}

}  // namespace asc
