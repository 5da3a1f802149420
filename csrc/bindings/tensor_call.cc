// Runs an executable on tensors of another library (torch) through DLPack's C interface: no arrays in between.
#include <algorithm>
#include <memory>

#include "bindings/executable.h"
#include "bindings/module.h"
#include "bindings/tensor_data.h"
#include "bindings/unlocked.h"
#include "plan/updates.h"

namespace asc {
namespace {

using dlpack::address_of;
using dlpack::dtype_of;
using dlpack::is_contiguous;
using dlpack::ManagedTensor;
using dlpack::TensorData;
using dlpack::type_of;

// Ours, with the shape and strides that its DLPack form points to.
struct Exported {
  ManagedTensor managed;
  std::shared_ptr<const Buffer> buffer;
  int64_t shape[kMaxRank], strides[kMaxRank];
};

struct Output {
  int index;  // among the results; -1: None
  bool is_number;
  std::vector<int> order;  // our axis i is torch's axis order[i]; empty: as they are
};

// A result that goes to an argument instead of the caller.
struct Update {
  int argument;
  int index;      // among the results
  int input;      // that the argument is; -1: none
  bool is_above;  // the run may write it where the argument lies
};

constexpr size_t kLongCopyBytes = size_t{1} << 16;  // worth releasing the GIL

bool is_permutation(std::vector<int> order) {
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i] != static_cast<int>(i)) return false;
  return true;
}

// A size of torch's, or a factor made of sizes.
union Number {
  int64_t whole;
  double real;
};

Number number_of(const PlanValue& value, const py::object& arg) {
  Number n{};
  if (value.type.dtype == DType::kFloat64)
    n.real = arg.cast<double>();
  else if (value.type.dtype == DType::kInt64 && PyLong_Check(arg.ptr()))
    n.whole = arg.cast<int64_t>();
  else
    throw GraphError("[torch] argument '" + value.name + "': expected " + name_of(value.type.dtype) +
                     ", got a Python " + Py_TYPE(arg.ptr())->tp_name);
  return n;
}

py::object number_from(const TensorView& result) {
  if (result.dtype == DType::kFloat64) return py::float_(*static_cast<const double*>(result.data));
  return py::int_(*static_cast<const int64_t*>(result.data));
}

class TensorCall {
 public:
  TensorCall(py::object owner, const py::capsule& api, std::vector<int> inputs, const py::list& outputs,
             const std::vector<std::pair<int, int>>& updates)
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
    for (const auto& [argument, index] : updates)
      fits = fits && argument >= 0 && index >= 0 && index < static_cast<int>(plan.outputs.size());
    if (!fits) throw GraphError("[torch] arguments do not fit the graph's inputs and outputs");
    for (const auto& [argument, index] : updates) add_update(argument, index);
  }

  // How many updates a run writes where the argument lies, if that is contiguous.
  int64_t updates_in_place() const {
    return std::count_if(updates_.begin(), updates_.end(), [](const Update& u) { return u.is_above; });
  }

  py::object run(const py::list& args) const {
    Arguments given;
    read(args, given);
    read_targets(args, given);
    Results results;
    if (!repeat(given, results)) start(given, results);
    write_targets(given, results);
    py::object list = results_of(results);
    if (PyList_SetSlice(args.ptr(), 0, PY_SSIZE_T_MAX, nullptr) != 0) throw py::error_already_set();
    return list;
  }

 private:
  struct Arguments {
    std::vector<TensorView> views;
    std::vector<py::object> held;
    std::vector<Number> numbers;      // reserved: views point into it
    std::vector<TensorData> targets;  // of updates; their shapes and strides are the tensors'
  };
  struct Results {
    std::vector<TensorView> views;
    std::vector<std::shared_ptr<const Buffer>> buffers;  // null where an argument's memory was written
  };

  void add_update(int argument, int index) {
    int input = static_cast<int>(inputs_.size()) - 1;
    while (input >= 0 && inputs_[input] != argument) --input;
    const bool is_above =
        input >= 0 && exe_->core->device_info().can_scatter_in_place && may_lie_over(exe_->core->plan(), index, input);
    updates_.push_back({argument, index, input, is_above});
  }

  void read(const py::list& args, Arguments& given) const {
    const std::vector<ValueId>& inputs = exe_->core->plan().inputs;
    given.views.reserve(inputs.size());
    given.held.reserve(inputs.size());
    given.numbers.reserve(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs_[i] < 0 || static_cast<size_t>(inputs_[i]) >= args.size())
        throw GraphError("[torch] got " + std::to_string(args.size()) + " arguments, expected more than " +
                         std::to_string(inputs_[i]));
      py::object arg = py::reinterpret_borrow<py::object>(PyList_GET_ITEM(args.ptr(), inputs_[i]));
      const PlanValue& value = exe_->core->plan().values[inputs[i]];
      if (PyLong_Check(arg.ptr()) || PyFloat_Check(arg.ptr())) {
        given.numbers.push_back(number_of(value, arg));
        given.views.push_back({value.type.dtype, Shape{}, &given.numbers.back()});
      } else {
        given.views.push_back(borrow(value, arg));
      }
      given.held.push_back(std::move(arg));
    }
  }

  void read_targets(const py::list& args, Arguments& given) const {
    const Plan& plan = exe_->core->plan();
    given.targets.resize(updates_.size());
    for (size_t i = 0; i < updates_.size(); ++i) {
      if (static_cast<size_t>(updates_[i].argument) >= args.size())
        throw GraphError("[torch] got " + std::to_string(args.size()) + " arguments, expected more than " +
                         std::to_string(updates_[i].argument));
      const PlanValue& value = plan.values[plan.outputs[updates_[i].index]];
      const TensorData& t = given.targets[i];
      look_at(value, args[updates_[i].argument], given.targets[i]);
      if (dtype_of(t.dtype) != value.type.dtype || t.ndim > kMaxRank)
        throw GraphError("[torch] '" + value.name + "' is " + name_of(value.type.dtype) + ", its argument " +
                         name_of(dtype_of(t.dtype)) + " of rank " + std::to_string(t.ndim));
    }
  }

  // The address of result `index`, and its shape, where it may be written over an argument as that is; else null.
  void* place_above(const Arguments& given, size_t index, Shape& shape) const {
    for (size_t i = 0; i < updates_.size(); ++i) {
      const Update& u = updates_[i];
      if (!u.is_above || u.index != static_cast<int>(index)) continue;
      if (given.views[u.input].data != address_of(given.targets[i])) return nullptr;  // the run reads a copy
      shape = given.views[u.input].shape;
      return given.views[u.input].data;
    }
    return nullptr;
  }

  void write_targets(const Arguments& given, const Results& results) const {
    for (size_t i = 0; i < updates_.size(); ++i) {
      const TensorView& from = results.views[updates_[i].index];
      const TensorData& to = given.targets[i];
      if (from.shape.rank() != to.ndim || !std::equal(to.shape, to.shape + to.ndim, from.shape.begin()))
        throw GraphError("[torch] argument " + std::to_string(updates_[i].argument) + " would become " +
                         from.shape.text() + ", another shape than it has");
      if (from.data == address_of(to)) continue;
      const size_t size = size_of(from.dtype);
      if (static_cast<size_t>(from.shape.num_elements()) * size < kLongCopyBytes) {
        dlpack::copy_into(to, from.data, size);
      } else {
        const Unlocked unlocked;
        dlpack::copy_into(to, from.data, size);
      }
    }
  }

  // `arg` becomes a copy where it cannot be read in place.
  TensorView borrow(const PlanValue& value, py::object& arg) const {
    TensorData t;
    look_at(value, arg, t);
    TensorView v{dtype_of(t.dtype), {}, address_of(t)};
    const bool is_aligned = reinterpret_cast<uintptr_t>(v.data) % size_of(value.type.dtype) == 0;
    if (v.dtype == value.type.dtype && (!is_contiguous(t) || !is_aligned)) {
      arg = arg.attr("detach")().attr("clone")(py::arg("memory_format") = contiguous_format());
      look_at(value, arg, t);
      v.data = address_of(t);
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

  // False where a run has to be started.
  bool repeat(const Arguments& given, Results& results) const {
    RecentCall* const call = find_recent(*exe_, [&](const Repeat::Signature& s) {
      for (size_t i = 0; i < s.inputs.size(); ++i)
        if (given.views[i].shape != s.inputs[i].shape) return false;
      return true;
    });
    if (!call) return false;
    const Repeat::Signature& s = call->signature;
    std::vector<void*> inputs, outputs;
    inputs.reserve(given.views.size());
    for (const TensorView& v : given.views) inputs.push_back(v.data);
    results.views = s.outputs;  // of its own: another thread may change the signature
    results.buffers.resize(s.outputs.size());
    outputs.reserve(s.outputs.size());
    for (size_t i = 0; i < results.views.size(); ++i) {
      TensorView& v = results.views[i];
      Shape shape;
      v.data = place_above(given, i, shape);
      if (!v.data) {
        const auto bytes = static_cast<size_t>(v.shape.num_elements()) * size_of(v.dtype);
        results.buffers[i] = std::make_shared<const Buffer>(bytes);
        v.data = results.buffers[i]->data();
      }
      outputs.push_back(v.data);
    }
    return repeat_addresses(*exe_, *call, inputs.data(), outputs.data());
  }

  void start(const Arguments& given, Results& results) const {
    std::vector<TensorView> bound;
    if (!updates_.empty()) bound.resize(exe_->core->plan().outputs.size());
    for (size_t i = 0; i < bound.size(); ++i)
      if (void* data = place_above(given, i, bound[i].shape)) {
        bound[i].data = data;
        bound[i].dtype = exe_->core->plan().values[exe_->core->plan().outputs[i]].type.dtype;
      }
    std::shared_ptr<Run> run;
    try {
      const Unlocked unlocked;
      run = exe_->core->start(given.views, bound, false);
      run->wait(-1);
    } catch (const DeviceError&) {
      if (run) keep_if_lost(*run, given.held);
      throw;
    }
    update_recent(*exe_);
    results = {};
    for (const Run::Result& r : run->results()) {
      results.views.push_back(r.view);
      results.buffers.push_back(r.fresh);
    }
  }

  py::object results_of(const Results& results) const {
    py::list list(outputs_.size());
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Output& o = outputs_[i];
      if (o.index < 0)
        list[i] = py::none();
      else if (o.is_number)
        list[i] = number_from(results.views[o.index]);
      else
        list[i] = exported(results.views[o.index], results.buffers[o.index], o.order);
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
  std::vector<Update> updates_;
  mutable PyTypeObject* known_types_[2] = {};  // tensors and parameters; their module keeps them for the process
};

}  // namespace

void bind_tensor_call(py::module_& m) {
  py::class_<TensorCall>(m, "TensorCall", py::dynamic_attr())
      .def(py::init<py::object, const py::capsule&, std::vector<int>, const py::list&,
                    const std::vector<std::pair<int, int>>&>(),
           py::arg("executable"), py::arg("exchange_api"), py::arg("inputs"), py::arg("outputs"), py::arg("updates"))
      .def("__call__", &TensorCall::run, py::arg("args"))
      .def_property_readonly("updates_in_place", &TensorCall::updates_in_place);
}

}  // namespace asc
