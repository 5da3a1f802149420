// The devices that packages have registered in this process. Needs no header of theirs.
#pragma once

#include <string>
#include <vector>

struct asc_device;

namespace asc {

class Plugin;

extern const char* const kDeviceCapsule;  // the name of capsules that hold an asc_device

// Registers a device for the life of the process, and returns its name. Once more changes nothing. Callers take turns
// (the bindings: Python's lock). Throws DeviceError for what is not whole, and for a second device of one name.
std::string add_plugin(const asc_device* device);

// Any thread. Null where there is none of that name.
const Plugin* find_plugin(const std::string& name);

struct PluginListing {
  std::string name, description;
};
std::vector<PluginListing> list_plugins();

}  // namespace asc
