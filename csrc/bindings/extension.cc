// Operators and devices that packages bring, in C.
#include "ops/extension.h"

#include "backends/plugin/registry.h"
#include "bindings/module.h"

namespace asc {

void bind_extension(py::module_& m) {
  // capsule -> (name, number, outputs); the capsule is kept for the life of the process
  m.def("register_operator", [](const py::object& object) {
    if (!PyCapsule_IsValid(object.ptr(), ASC_OPERATOR_CAPSULE))
      throw PlanError("[op] " + py::str(py::type::of(object)).cast<std::string>() +
                      " is no capsule named '" ASC_OPERATOR_CAPSULE "'; pass what the package's C code makes");
    const auto* op = static_cast<const asc_operator*>(PyCapsule_GetPointer(object.ptr(), ASC_OPERATOR_CAPSULE));
    const int64_t number = add_extension(op);
    object.inc_ref();
    return py::make_tuple(op->name, number, op->outputs);
  });
  // capsule -> name; the capsule is kept for the life of the process
  m.def("register_device", [](const py::object& object) {
    if (!PyCapsule_IsValid(object.ptr(), kDeviceCapsule))
      throw DeviceError("[device] " + py::str(py::type::of(object)).cast<std::string>() + " is no capsule named '" +
                        kDeviceCapsule + "'; pass what the package's C code makes");
    const auto* device = static_cast<const asc_device*>(PyCapsule_GetPointer(object.ptr(), kDeviceCapsule));
    std::string name = add_plugin(device);
    object.inc_ref();
    return name;
  });
}

}  // namespace asc
