// The parts of the extension module. A binding file holds no logic of its own.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>

namespace asc {

namespace py = pybind11;

void bind_errors(py::module_& m);
void bind_graph(py::module_& m);
void bind_executable(py::module_& m);
void bind_bindings(py::module_& m);     // after bind_executable
void bind_store(py::module_& m);        // after bind_executable
void bind_tensor_call(py::module_& m);  // after bind_executable
void bind_support(py::module_& m);
void bind_primitives(py::module_& m);
void bind_memory(py::module_& m);
void bind_host_call(py::module_& m);
void bind_tasks(py::module_& m);      // after bind_executable
void bind_foresight(py::module_& m);  // after bind_executable
void bind_extension(py::module_& m);

}  // namespace asc
