#include "runtime/support.h"

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
}

}  // namespace asc
