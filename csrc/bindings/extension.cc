// Operators that packages bring, in C.
#include "ops/extension.h"

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
}

}  // namespace asc
