#include "graph/graph.h"
#include "bindings/arrays.h"
#include "bindings/module.h"
#include "ops/op.h"

namespace asc {
namespace {

std::string describe(py::handle value) { return py::str(py::type::of(value)).cast<std::string>(); }

HostTensor copy_constant(const py::array& any, DType dtype) {
  const py::array array = py::array::ensure(any, py::array::c_style);
  if (!array) throw GraphError("[graph] a constant is not convertible to a contiguous array; pass a NumPy array");
  if (dtype == DType::kUndefined) dtype = dtype_of(array.dtype());
  if (dtype == DType::kUndefined || static_cast<size_t>(array.itemsize()) != size_of(dtype))
    throw UnsupportedError("[graph] constants of type " + py::str(array.dtype()).cast<std::string>() +
                           " are not supported; convert them to a numeric type");
  TensorView view = view_of(array, dtype);
  HostTensor t = HostTensor::allocate(dtype, view.shape);
  if (t.bytes()) std::memcpy(t.mutable_data(), view.data, t.bytes());
  return t;
}

Attribute::Data list_attribute(const std::string& name, const py::sequence& values) {
  if (values.size() == 0) return std::vector<int64_t>{};
  if (py::isinstance<py::str>(values[0])) return values.cast<std::vector<std::string>>();
  bool all_ints = true;
  for (py::handle v : values) {
    all_ints = all_ints && py::isinstance<py::int_>(v);
    if (!py::isinstance<py::int_>(v) && !py::isinstance<py::float_>(v))
      throw GraphError("[graph] attribute '" + name + "': a list holds " + describe(v) +
                       "; use ints, floats or strings");
  }
  if (all_ints) return values.cast<std::vector<int64_t>>();
  return values.cast<std::vector<double>>();
}

Attribute::Data attribute(const std::string& name, py::handle value) {
  if (py::isinstance<py::int_>(value)) return value.cast<int64_t>();
  if (py::isinstance<py::float_>(value)) return value.cast<double>();
  if (py::isinstance<py::str>(value)) return value.cast<std::string>();
  if (py::isinstance<Graph>(value)) return value.cast<std::shared_ptr<Graph>>();
  if (py::isinstance<py::array>(value))
    return copy_constant(py::reinterpret_borrow<py::array>(value), DType::kUndefined);
  if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value))
    return list_attribute(name, py::reinterpret_borrow<py::sequence>(value));
  throw GraphError("[graph] attribute '" + name + "' has type " + describe(value) +
                   "; use int, float, str, a list of them, an array or a Graph");
}

ValueId add_value(Graph& g, std::string name, const std::optional<std::string>& dtype,
                  const std::optional<py::sequence>& dims) {
  Value v;
  v.name = std::move(name);
  if (dtype) v.type.dtype = dtype_from_name(*dtype);
  if (dims) {
    v.type.has_rank = true;
    for (py::handle d : *dims) {
      Dim dim;
      if (py::isinstance<py::str>(d))
        dim.symbol = d.cast<std::string>();
      else if (!d.is_none())
        dim.value = d.cast<int64_t>();
      if (dim.value < -1)
        throw GraphError("[graph] value '" + v.name + "' has the negative dim " + std::to_string(dim.value));
      v.type.dims.push_back(std::move(dim));
    }
  }
  return g.add_value(std::move(v));
}

void add_node(Graph& g, std::string op, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
              const py::dict& attributes, std::string name) {
  Node n;
  n.op = std::move(op);
  n.name = std::move(name);
  n.inputs = std::move(inputs);
  n.outputs = std::move(outputs);
  for (const auto& [key, value] : attributes) {
    const std::string attribute_name = key.cast<std::string>();
    n.attributes.set(attribute_name, attribute(attribute_name, value));
  }
  g.add_node(std::move(n));
}

}  // namespace

void bind_graph(py::module_& m) {
  py::class_<Graph, std::shared_ptr<Graph>>(m, "Graph")
      .def(py::init([](std::string name) {
             auto g = std::make_shared<Graph>();
             g->name = std::move(name);
             return g;
           }),
           py::arg("name") = "graph")
      .def_readonly("name", &Graph::name)
      .def("add_value", &add_value, py::arg("name"), py::arg("dtype") = py::none(), py::arg("dims") = py::none())
      .def(
          "add_constant",
          [](Graph& g, std::string name, const py::array& array, const std::optional<std::string>& dtype) {
            return g.add_constant(std::move(name),
                                  copy_constant(array, dtype ? dtype_from_name(*dtype) : DType::kUndefined));
          },
          py::arg("name"), py::arg("array"), py::arg("dtype") = py::none())
      .def("add_input", &Graph::add_input)
      .def("add_output", &Graph::add_output)
      .def("add_node", &add_node, py::arg("op"), py::arg("inputs"), py::arg("outputs"),
           py::arg("attributes") = py::dict(), py::arg("name") = "");
  m.def("op_names", [] { return OpRegistry::instance().names(); });
}

}  // namespace asc
