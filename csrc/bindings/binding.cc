// Fixed inputs and results of an executable, run again and again.
#include <exception>

#include "bindings/arrays.h"
#include "bindings/executable.h"
#include "bindings/module.h"

namespace asc {
namespace {

struct PyBinding {
  py::object owner;  // keeps the executable
  const PyExecutable* exe;
  Feeds feeds;
  std::vector<TensorView> bound;
  std::vector<py::object> bound_arrays;
};

// Views of caller-owned result arrays; they must be usable in place and writeable.
void take_bound(const PyExecutable& exe, const py::dict& outputs, std::vector<TensorView>& views,
                std::vector<py::object>& held) {
  views.resize(exe.output_names.size());
  for (const auto& item : outputs) {
    size_t i = 0;
    while (i < exe.output_names.size() && !exe.output_names[i].equal(item.first)) ++i;
    const std::string name = text_of(item.first);
    if (i == exe.output_names.size()) throw GraphError("[bind] output '" + name + "' is not one of the model's");
    const DType dtype = exe.core->plan().values[exe.core->plan().outputs[i]].type.dtype;
    if (!py::isinstance<py::array>(item.second)) throw GraphError("[bind] output '" + name + "' must be a NumPy array");
    py::array array = py::reinterpret_borrow<py::array>(item.second);
    if (!is_usable(array, dtype) || !array.writeable())
      throw GraphError("[bind] output '" + name + "' must be a writeable, C-contiguous, aligned array of " +
                       name_of(dtype) + ", got " + text_of(array.dtype()));
    views[i] = view_of(array, dtype);
    held.push_back(std::move(array));
  }
}

bool share_memory(const TensorView& a, const TensorView& b) {
  const auto bytes = [](const TensorView& v) {
    return v.data ? static_cast<uintptr_t>(v.shape.num_elements()) * size_of(v.dtype) : 0;
  };
  const auto first_a = reinterpret_cast<uintptr_t>(a.data), first_b = reinterpret_cast<uintptr_t>(b.data);
  return bytes(a) && bytes(b) && first_a < first_b + bytes(b) && first_b < first_a + bytes(a);
}

// Kernels may write a result before they have read all of an input: in place would be silently wrong for most.
void check_apart(const PyExecutable& exe, const Feeds& feeds, const std::vector<TensorView>& bound) {
  const auto complain = [&](size_t i, const char* what, const py::str& other) {
    throw GraphError("[bind] output '" + text_of(exe.output_names[i]) + "' shares memory with " + what + " '" +
                     text_of(other) + "'; bind a buffer of its own");
  };
  for (size_t i = 0; i < bound.size(); ++i) {
    for (size_t k = 0; k < feeds.views.size(); ++k)
      if (share_memory(bound[i], feeds.views[k])) complain(i, "input", exe.input_names[k]);
    for (size_t k = 0; k < i; ++k)
      if (share_memory(bound[i], bound[k])) complain(i, "output", exe.output_names[k]);
  }
}

// Result arrays by position; none where a result is not bound.
std::vector<py::object> by_position(const PyExecutable& exe, const py::dict& outputs) {
  std::vector<py::object> arrays(exe.output_names.size(), py::none());
  for (size_t i = 0; i < arrays.size(); ++i)
    if (outputs.contains(exe.output_names[i])) arrays[i] = outputs[exe.output_names[i]];
  return arrays;
}

std::unique_ptr<PyBinding> bind(const py::object& self, const py::dict& inputs, const py::dict& outputs) {
  const auto& exe = self.cast<const PyExecutable&>();
  auto b = std::unique_ptr<PyBinding>(new PyBinding{self, &exe, take_feeds(exe, inputs), {}, {}});
  std::vector<py::object> held;
  take_bound(exe, outputs, b->bound, held);
  check_apart(exe, b->feeds, b->bound);
  b->bound_arrays = by_position(exe, outputs);
  return b;
}

constexpr const char* kBindingName = "ascendsched.binding";

// Only pybind11's own calls turn exceptions into Python's.
PyObject* raise(std::exception_ptr error) noexcept {
  try {
    const py::cpp_function rethrow([error] { std::rethrow_exception(error); });
    return PyObject_CallNoArgs(rethrow.ptr());
  } catch (...) {
    return PyErr_NoMemory();
  }
}

PyObject* run_binding(PyObject* capsule, PyObject*) noexcept {
  try {
    const auto& b = *static_cast<const PyBinding*>(PyCapsule_GetPointer(capsule, kBindingName));
    if (py::object done = repeat_bound(*b.exe, b.feeds, b.bound, b.bound_arrays)) return done.release().ptr();
    return as_dict(*b.exe, run_now(*b.exe, b.feeds, b.bound, b.bound_arrays)).release().ptr();
  } catch (...) {
    return raise(std::current_exception());
  }
}

// A function of C: a call of pybind11's costs a third of what a short run does. It keeps the binding.
py::object runner_of(const py::object& self) {
  static PyMethodDef method = {"run", run_binding, METH_NOARGS, nullptr};
  const auto release = [](PyObject* capsule) { Py_XDECREF(static_cast<PyObject*>(PyCapsule_GetContext(capsule))); };
  auto capsule = py::reinterpret_steal<py::object>(PyCapsule_New(self.cast<PyBinding*>(), kBindingName, release));
  if (!capsule || PyCapsule_SetContext(capsule.ptr(), self.inc_ref().ptr()) != 0) throw py::error_already_set();
  auto run = py::reinterpret_steal<py::object>(PyCFunction_New(&method, capsule.ptr()));
  if (!run) throw py::error_already_set();
  return run;
}

}  // namespace

void bind_bindings(py::module_& m) {
  py::class_<PyBinding>(m, "Binding").def_property_readonly("run", &runner_of);
  m.attr("Executable").attr("bind") = py::cpp_function(&bind, py::name("bind"), py::is_method(m.attr("Executable")));
}

}  // namespace asc
