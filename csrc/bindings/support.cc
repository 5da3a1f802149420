#include "runtime/support.h"

#include "backends/cpu/build_info.h"
#include "bindings/module.h"
#include "runtime/devices.h"

namespace asc {

void bind_support(py::module_& m) {
  m.def(
      "check_support",
      [](const Graph& graph, const std::string& device) {
        py::list list;
        for (const NodeSupport& s : check_support(graph, *create_device(device, {}))) {
          py::list types;
          for (DType t : s.input_types) types.append(name_of(t));
          list.append(py::make_tuple(s.op, s.node, types, s.why_not));
        }
        return list;
      },
      py::arg("graph"), py::arg("device"));
  m.def("build_info", [] {
    py::dict d;
    for (const auto& [name, value] : cpu_build_info()) d[py::str(name)] = value;
    return d;
  });
  m.def("devices", [] {
    py::list list;
    for (const DeviceListing& d : list_devices()) list.append(py::make_tuple(d.name, d.description));
    return list;
  });
}

}  // namespace asc
