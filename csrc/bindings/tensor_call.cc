// Runs an executable on tensors of another library (torch) through DLPack's C interface: no arrays in between.
#include <algorithm>
#include <memory>

#include "bindings/exchange.h"
#include "bindings/executable.h"
#include "bindings/module.h"

namespace asc {
namespace {

using dlpack::ManagedTensor;
using dlpack::TensorData;

struct Type {
  DType dtype;
  dlpack::Type type;
};
constexpr Type kTypes[] = {
    {DType::kFloat32, {dlpack::kFloat, 32, 1}}, {DType::kFloat64, {dlpack::kFloat, 64, 1}},
    {DType::kFloat16, {dlpack::kFloat, 16, 1}}, {DType::kBFloat16, {dlpack::kBFloat, 16, 1}},
    {DType::kInt8, {dlpack::kInt, 8, 1}},       {DType::kUInt8, {dlpack::kUInt, 8, 1}},
    {DType::kInt16, {dlpack::kInt, 16, 1}},     {DType::kUInt16, {dlpack::kUInt, 16, 1}},
    {DType::kInt32, {dlpack::kInt, 32, 1}},     {DType::kUInt32, {dlpack::kUInt, 32, 1}},
    {DType::kInt64, {dlpack::kInt, 64, 1}},     {DType::kUInt64, {dlpack::kUInt, 64, 1}},
    {DType::kBool, {dlpack::kBool, 8, 1}},
};

DType dtype_of(const dlpack::Type& t) {
  for (const Type& known : kTypes)
    if (t.code == known.type.code && t.bits == known.type.bits && t.lanes == 1) return known.dtype;
  return DType::kUndefined;
}

dlpack::Type type_of(DType dtype) {
  for (const Type& known : kTypes)
    if (known.dtype == dtype) return known.type;
  throw UnsupportedError(std::string("[torch] results of type ") + name_of(dtype) + " have no form in DLPack");
}

bool is_contiguous(const TensorData& t) {
  if (!t.strides) return true;
  int64_t expected = 1;
  for (int i = t.ndim - 1; i >= 0; --i) {
    if (t.shape[i] != 1 && t.strides[i] != expected) {
      for (int k = 0; k < t.ndim; ++k)
        if (t.shape[k] == 0) return true;
      return false;
    }
    expected *= t.shape[i];
  }
  return true;
}

// Ours, with the shape and strides that its DLPack form points to.
struct Exported {
  ManagedTensor managed;
  std::shared_ptr<const Buffer> buffer;
  int64_t shape[kMaxRank], strides[kMaxRank];
};

struct Output {
  int index;  // among the results; -1: None
  bool is_size;
  std::vector<int> order;  // our axis i is torch's axis order[i]; empty: as they are
};

bool is_permutation(std::vector<int> order) {
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i] != static_cast<int>(i)) return false;
  return true;
}

class TensorCall {
 public:
  TensorCall(py::object owner, const py::capsule& api, std::vector<int> inputs, const py::list& outputs)
      : owner_(std::move(owner)), exe_(&owner_.cast<const PyExecutable&>()), inputs_(std::move(inputs)) {
    api_ = api.get_pointer<const dlpack::ExchangeApi>();
    if (api.name() == nullptr || std::string(api.name()) != dlpack::kCapsule || api_->version.major != 1 ||
        !api_->borrow_object || !api_->to_object)
      throw UnsupportedError("[torch] the tensors' DLPack exchange interface is not of version 1; install torch 2.10");
    for (const py::handle item : outputs) {
      const auto t = item.cast<py::tuple>();
      outputs_.push_back({t[0].cast<int>(), t[1].cast<bool>(), t[2].cast<std::vector<int>>()});
    }
    const Plan& plan = exe_->core->plan();
    bool fits = inputs_.size() == plan.inputs.size();
    for (const Output& o : outputs_)
      fits = fits && o.index < static_cast<int>(plan.outputs.size()) && is_permutation(o.order);
    if (!fits) throw GraphError("[torch] arguments do not fit the graph's inputs and outputs");
  }

  py::object run(const py::list& args) const {
    Arguments given;
    read(args, given);
    py::object results = repeat(given);
    if (!results) results = start(given);
    if (PyList_SetSlice(args.ptr(), 0, PY_SSIZE_T_MAX, nullptr) != 0) throw py::error_already_set();
    return results;
  }

 private:
  struct Arguments {
    std::vector<TensorView> views;
    std::vector<py::object> held;
    std::vector<int64_t> sizes;  // reserved: views point into it
  };

  void read(const py::list& args, Arguments& given) const {
    const std::vector<ValueId>& inputs = exe_->core->plan().inputs;
    given.views.reserve(inputs.size());
    given.held.reserve(inputs.size());
    given.sizes.reserve(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs_[i] < 0 || static_cast<size_t>(inputs_[i]) >= args.size())
        throw GraphError("[torch] got " + std::to_string(args.size()) + " arguments, expected more than " +
                         std::to_string(inputs_[i]));
      py::object arg = py::reinterpret_borrow<py::object>(PyList_GET_ITEM(args.ptr(), inputs_[i]));
      const PlanValue& value = exe_->core->plan().values[inputs[i]];
      if (PyLong_Check(arg.ptr())) {
        given.sizes.push_back(arg.cast<int64_t>());
        given.views.push_back({DType::kInt64, Shape{}, &given.sizes.back()});
      } else {
        given.views.push_back(borrow(value, arg));
      }
      given.held.push_back(std::move(arg));
    }
  }

  // `arg` becomes a copy where it cannot be read in place.
  TensorView borrow(const PlanValue& value, py::object& arg) const {
    TensorData t;
    look_at(value, arg, t);
    TensorView v{dtype_of(t.dtype), {}, static_cast<char*>(t.data) + t.byte_offset};
    const bool is_aligned = reinterpret_cast<uintptr_t>(v.data) % size_of(value.type.dtype) == 0;
    if (v.dtype == value.type.dtype && (!is_contiguous(t) || !is_aligned)) {
      arg = arg.attr("detach")().attr("clone")(py::arg("memory_format") = contiguous_format());
      look_at(value, arg, t);
      v.data = static_cast<char*>(t.data) + t.byte_offset;
    }
    if (v.dtype != value.type.dtype || t.ndim > kMaxRank)
      throw GraphError("[torch] argument '" + value.name + "': expected " + name_of(value.type.dtype) + ", got " +
                       name_of(v.dtype) + " of rank " + std::to_string(t.ndim));
    for (int i = 0; i < t.ndim; ++i) v.shape.push_back(t.shape[i]);
    return v;
  }

  void look_at(const PlanValue& value, const py::object& arg, TensorData& t) const {
    // Only types that state our interface hold what it expects.
    if (Py_TYPE(arg.ptr()) != known_types_[0] && Py_TYPE(arg.ptr()) != known_types_[1]) {
      py::object api = py::getattr(py::type::of(arg), "__dlpack_c_exchange_api__", py::none());
      if (!py::isinstance<py::capsule>(api) ||
          py::reinterpret_borrow<py::capsule>(api).get_pointer<const dlpack::ExchangeApi>() != api_)
        throw GraphError("[torch] argument '" + value.name + "' is " + py::str(py::type::of(arg)).cast<std::string>() +
                         ", no tensor");
      known_types_[1] = known_types_[0];
      known_types_[0] = Py_TYPE(arg.ptr());
    }
    if (api_->borrow_object(arg.ptr(), &t) != 0) throw py::error_already_set();
    if (t.device_type != dlpack::kCpu)
      throw GraphError("[torch] argument '" + value.name + "' is not on the CPU; move it there");
  }

  static const py::object& contiguous_format() {
    static const py::object& format =
        *new py::object(py::module_::import("torch").attr("contiguous_format"));  // kept for the process
    return format;
  }

  // A null object where a run has to be started.
  py::object repeat(const Arguments& given) const {
    const Repeat::Signature& s = exe_->last.signature;
    if (s.id == 0 || s.inputs.size() != given.views.size()) return {};
    for (size_t i = 0; i < s.inputs.size(); ++i)
      if (given.views[i].shape != s.inputs[i].shape) return {};
    std::vector<void*> inputs, outputs;
    inputs.reserve(given.views.size());
    for (const TensorView& v : given.views) inputs.push_back(v.data);
    std::vector<TensorView> views = s.outputs;  // of its own: another thread may change the signature
    std::vector<std::shared_ptr<const Buffer>> buffers;
    buffers.reserve(views.size());
    outputs.reserve(views.size());
    for (TensorView& v : views) {
      buffers.push_back(std::make_shared<const Buffer>(static_cast<size_t>(v.shape.num_elements()) * size_of(v.dtype)));
      outputs.push_back(v.data = buffers.back()->data());
    }
    if (!repeat_addresses(*exe_, inputs.data(), outputs.data())) return {};
    return results_of(views, buffers);
  }

  py::object start(const Arguments& given) const {
    std::shared_ptr<Run> run;
    try {
      py::gil_scoped_release unlocked;
      run = exe_->core->start(given.views, {}, false);
      run->wait(-1);
    } catch (const DeviceError&) {
      if (run) keep_if_lost(*run, given.held);
      throw;
    }
    if (exe_->core->update_signature(exe_->last.signature)) exe_->last.ticks = 0;
    std::vector<TensorView> views;
    std::vector<std::shared_ptr<const Buffer>> buffers;
    for (const Run::Result& r : run->results()) {
      views.push_back(r.view);
      buffers.push_back(r.fresh);
    }
    return results_of(views, buffers);
  }

  py::object results_of(const std::vector<TensorView>& views,
                        const std::vector<std::shared_ptr<const Buffer>>& buffers) const {
    py::list list(outputs_.size());
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Output& o = outputs_[i];
      if (o.index < 0)
        list[i] = py::none();
      else if (o.is_size)
        list[i] = py::int_(*static_cast<const int64_t*>(views[o.index].data));
      else
        list[i] = exported(views[o.index], buffers[o.index], o.order);
    }
    return std::move(list);
  }

  py::object exported(const TensorView& view, const std::shared_ptr<const Buffer>& buffer,
                      const std::vector<int>& order) const {
    if (!order.empty() && static_cast<int>(order.size()) != view.shape.rank())
      throw GraphError("[torch] a result has rank " + std::to_string(view.shape.rank()) + ", expected " +
                       std::to_string(order.size()));
    auto e = std::make_unique<Exported>();
    e->buffer = buffer;
    int64_t stride = 1;
    for (int i = view.shape.rank() - 1; i >= 0; --i) {
      const int axis = order.empty() ? i : order[i];
      e->shape[axis] = view.shape[i];
      e->strides[axis] = stride;
      stride *= view.shape[i] > 0 ? view.shape[i] : 1;
    }
    const auto destroy = [](ManagedTensor* m) { delete static_cast<Exported*>(m->context); };
    e->managed = {{1, 0}, e.get(), destroy, 0, {}};
    e->managed.tensor = {view.data, dlpack::kCpu, 0, view.shape.rank(), type_of(view.dtype), e->shape, e->strides, 0};
    void* object = nullptr;
    if (api_->to_object(&e.release()->managed, &object) != 0) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(static_cast<PyObject*>(object));
  }

  py::object owner_;
  const PyExecutable* exe_;
  const dlpack::ExchangeApi* api_;
  std::vector<int> inputs_;
  std::vector<Output> outputs_;
  mutable PyTypeObject* known_types_[2] = {};  // tensors and parameters; their module keeps them for the process
};

}  // namespace

void bind_tensor_call(py::module_& m) {
  py::class_<TensorCall>(m, "TensorCall", py::dynamic_attr())
      .def(py::init<py::object, const py::capsule&, std::vector<int>, const py::list&>(), py::arg("executable"),
           py::arg("exchange_api"), py::arg("inputs"), py::arg("outputs"))
      .def("__call__", &TensorCall::run, py::arg("args"));
}

}  // namespace asc
