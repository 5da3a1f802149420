#include "runtime/support.h"

#include "backends/cpu/build_info.h"
#include "bindings/module.h"
#include "bindings/unlocked.h"
#include "runtime/devices.h"

namespace asc {

namespace {

// A device may belong to a package: its functions are not called with Python's lock.
template <typename Use>
auto with_device(const std::string& name, Use use) {
  const Unlocked unlocked;
  return use(*create_device(name, {}));
}

}  // namespace

void bind_support(py::module_& m) {
  m.def(
      "check_support",
      [](const Graph& graph, const std::string& device) {
        py::list list;
        const auto found = with_device(device, [&](const Device& d) { return check_support(graph, d); });
        for (const NodeSupport& s : found) {
          py::list types;
          for (DType t : s.input_types) types.append(name_of(t));
          list.append(py::make_tuple(s.op, s.node, types, s.why_not));
        }
        return list;
      },
      py::arg("graph"), py::arg("device"));
  m.def("device_info", [](const std::string& device) {
    const DeviceInfo info = with_device(device, [](const Device& d) { return d.info(); });
    py::dict d;
    d["name"] = info.name;
    d["threads"] = info.threads;
    d["computes"] = info.computes;
    d["memory_limit_bytes"] = info.memory_limit_bytes;
    return d;
  });
  m.def("build_info", [] {
    py::dict d;
    for (const auto& [name, value] : cpu_build_info()) d[py::str(name)] = value;
    return d;
  });
  m.def(
      "devices",
      [](int threads) {
        py::list list;
        for (const DeviceListing& d : list_devices(threads)) list.append(py::make_tuple(d.name, d.description));
        return list;
      },
      py::arg("threads"));
}

}  // namespace asc
