#include "bindings/module.h"

#include "base/error.h"
#include "bindings/unlocked.h"

namespace asc {
namespace {

// ascendsched.errors.<name>, looked up once and kept for the process.
PyObject* python_class(const char* name) {
  return py::module_::import("ascendsched.errors").attr(name).cast<py::object>().release().ptr();
}

}  // namespace

void bind_errors(py::module_&) {
  static PyObject* const graph = python_class("GraphError");
  static PyObject* const plan = python_class("PlanError");
  static PyObject* const unsupported = python_class("UnsupportedError");
  static PyObject* const device = python_class("DeviceError");
  static PyObject* const unavailable = python_class("DeviceUnavailableError");
  static PyObject* const memory = python_class("OutOfMemoryError");
  static PyObject* const timeout = python_class("WaitTimeoutError");
  static PyObject* const cancelled = python_class("RunCancelledError");
  static PyObject* const base = python_class("AscendSchedError");
  py::register_exception_translator([](std::exception_ptr p) {
    try {
      std::rethrow_exception(p);
    } catch (const GraphError& e) {
      PyErr_SetString(graph, e.what());
    } catch (const PlanError& e) {
      PyErr_SetString(plan, e.what());
    } catch (const UnsupportedError& e) {
      PyErr_SetString(unsupported, e.what());
    } catch (const DeviceUnavailableError& e) {
      PyErr_SetString(unavailable, e.what());
    } catch (const OutOfMemoryError& e) {
      PyErr_SetString(memory, e.what());
    } catch (const DeviceError& e) {
      PyErr_SetString(device, e.what());
    } catch (const WaitTimeoutError& e) {
      PyErr_SetString(timeout, e.what());
    } catch (const RunCancelledError& e) {
      PyErr_SetString(cancelled, e.what());
    } catch (const Error& e) {
      PyErr_SetString(base, e.what());
    } catch (const std::bad_alloc&) {
      PyErr_SetString(memory, "[host] host memory exhausted; use smaller shapes");
    }
  });
}

}  // namespace asc

PYBIND11_MODULE(_core, m) {
  asc::bind_errors(m);
  asc::bind_graph(m);
  asc::bind_executable(m);
  asc::bind_bindings(m);
  asc::bind_store(m);
  asc::bind_tensor_call(m);
  asc::bind_support(m);
  asc::bind_primitives(m);
  asc::bind_memory(m);
  asc::bind_host_call(m);
  asc::bind_tasks(m);
  asc::bind_foresight(m);
  asc::bind_extension(m);
  asc::bind_exit(m);
}
