// Operators that Python computes.
#include "ops/host_call.h"

#include "bindings/arrays.h"
#include "bindings/module.h"
#include "bindings/unlocked.h"

namespace asc {
namespace {

py::object make_argument(const HostTensor* tensor) {
  if (!tensor) return py::none();
  TensorView view{tensor->dtype, tensor->shape, const_cast<void*>(tensor->data())};
  py::array array = make_array(view, tensor->buffer);
  array.attr("flags").attr("writeable") = false;
  return py::make_tuple(array, name_of(tensor->dtype));
}

HostTensor take_result(const Node& node, py::handle result) {
  if (result.is_none()) return {};
  const auto pair = py::reinterpret_borrow<py::tuple>(result);
  const DType dtype = dtype_from_name(pair[1].cast<std::string>());
  const py::array array = py::array::ensure(pair[0], py::array::c_style);
  if (!array || static_cast<size_t>(array.itemsize()) != size_of(dtype) || array.ndim() > kMaxRank)
    throw GraphError("[host_call] '" + node.name + "': a result has another type or more dimensions than the core has");
  const TensorView view = view_of(array, dtype);
  HostTensor tensor = HostTensor::allocate(dtype, view.shape);
  if (tensor.bytes()) std::memcpy(tensor.mutable_data(), view.data, tensor.bytes());
  return tensor;
}

std::vector<HostTensor> call_python(const py::object& callable, const Node& node,
                                    const std::vector<const HostTensor*>& inputs) {
  const Locked gil;
  const Attributes& a = node.attributes;
  try {
    py::list arguments;
    for (const HostTensor* input : inputs) arguments.append(make_argument(input));
    const py::object results = callable(std::string(a.get_string("callable", "")),
                                        std::string(a.get_string("payload", "")), node.outputs.size(), arguments);
    std::vector<HostTensor> tensors;
    for (py::handle result : py::reinterpret_borrow<py::sequence>(results))
      tensors.push_back(take_result(node, result));
    return tensors;
  } catch (py::error_already_set& error) {
    const std::string what = error.what();
    throw GraphError("[host_call] " + std::string(a.get_string("operator", node.op)) + " '" + node.name +
                     "': " + what.substr(0, what.find('\n')) + "; check its inputs");
  }
}

}  // namespace

void bind_host_call(py::module_& m) {
  // callable(name, payload, output count, [(array, element type) or None]) -> [(array, element type) or None]
  m.def("set_host_call", [](const py::object& callable) {
    const py::object& kept = *new py::object(callable);  // for the life of the process
    set_host_call([&kept](const Node& node, const std::vector<const HostTensor*>& inputs) {
      return call_python(kept, node, inputs);
    });
  });
}

}  // namespace asc
