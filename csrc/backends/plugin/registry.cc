#include "backends/plugin/registry.h"

#include <array>
#include <atomic>
#include <memory>

#include "backends/plugin/plugin.h"

namespace asc {

const char* const kDeviceCapsule = ASC_DEVICE_CAPSULE;

namespace {

constexpr size_t kMaxPlugins = 256;

// Written once, before the count tells of it. Never destroyed: tilings may be used until the process ends.
struct Table {
  std::array<const Plugin*, kMaxPlugins> plugins{};
  std::atomic<size_t> count{0};
};

Table& table() {
  static Table& all = *new Table;
  return all;
}

}  // namespace

std::string add_plugin(const asc_device* device) {
  auto plugin = std::make_unique<const Plugin>(device);
  if (const Plugin* known = find_plugin(plugin->name())) {
    if (known->is_of(device)) return known->name();
    throw DeviceError("[device '" + plugin->name() +
                      "'] another device of this name is registered; remove one of the two packages");
  }
  Table& all = table();
  const size_t count = all.count;
  if (count == kMaxPlugins)
    throw DeviceError("[device '" + plugin->name() + "'] there are " + std::to_string(kMaxPlugins) +
                      " devices already; start a new process");
  all.plugins[count] = plugin.release();
  all.count = count + 1;
  return all.plugins[count]->name();
}

const Plugin* find_plugin(const std::string& name) {
  const Table& all = table();
  for (size_t i = 0, count = all.count; i < count; ++i)
    if (all.plugins[i]->name() == name) return all.plugins[i];
  return nullptr;
}

std::vector<PluginListing> list_plugins() {
  const Table& all = table();
  std::vector<PluginListing> list;
  for (size_t i = 0, count = all.count; i < count; ++i) {
    const char* description = all.plugins[i]->functions().description;
    list.push_back({all.plugins[i]->name(), description ? description : ""});
  }
  return list;
}

}  // namespace asc
