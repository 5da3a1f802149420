// The shortest way of a call: arrays of the same types and shapes as one of the last calls, executed at once.
#include <array>

#include "bindings/arrays.h"
#include "bindings/executable.h"
#include "profile/clock.h"

namespace asc {
namespace {

constexpr size_t kMaxArrays = 64;         // on either side; models with more take the long way
constexpr size_t kOwnMemoryBytes = 4096;  // larger results are worth 64-byte alignment
constexpr double kShortNs = 5'000;        // below, releasing the GIL costs more than it gives to others
constexpr uint32_t kUntimed = 7;  // short repetitions between two that are timed, which costs as much as they do

// Arrays that a call keeps; nothing is initialised or destroyed that is not there.
class Arrays {
 public:
  Arrays() = default;
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;
  ~Arrays() {
    for (size_t i = 0; i < count_; ++i) Py_DECREF(items_[i]);
  }
  PyObject* add(py::object array) { return items_[count_++] = array.release().ptr(); }
  PyObject* operator[](size_t i) const { return items_[i]; }

 private:
  size_t count_ = 0;
  PyObject* items_[kMaxArrays];
};
using Addresses = std::array<void*, kMaxArrays>;

// Whether the object is an array that can be used in place, of the type and shape wanted.
bool is_same(py::handle object, const TensorView& want) {
  constexpr int kNeeded = py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_ | py::detail::npy_api::NPY_ARRAY_ALIGNED_;
  if (Py_TYPE(object.ptr()) != py::detail::npy_api::get().PyArray_Type_ || want.dtype == DType::kBFloat16) return false;
  const auto* array = py::detail::array_proxy(object.ptr());
  if (array->descr != descriptor_of(want.dtype) || (array->flags & kNeeded) != kNeeded) return false;
  if (array->nd != want.shape.rank()) return false;
  for (int i = 0; i < array->nd; ++i)
    if (array->dimensions[i] != want.shape[i]) return false;
  return true;
}

void* address_of(PyObject* array) { return py::detail::array_proxy(array)->data; }

py::object make_result(const TensorView& view) {
  const size_t bytes = static_cast<size_t>(view.shape.num_elements()) * size_of(view.dtype);
  if (bytes < kOwnMemoryBytes) return make_array(view.dtype, view.shape);
  auto buffer = std::make_shared<Buffer>(bytes);
  const TensorView result{view.dtype, view.shape, buffer->data()};
  return make_array(result, std::move(buffer));
}

}  // namespace

void update_recent(const PyExecutable& exe) {
  Repeats::Ids known;
  for (size_t i = 0; i < known.size(); ++i) known[i] = exe.recent[i].signature.id;
  for (auto& [place, signature] : exe.core->changed_signatures(known)) exe.recent[place] = {std::move(signature)};
}

// The GIL stays where the run is short and nobody else is at it.
bool repeat_addresses(const PyExecutable& exe, RecentCall& call, void* const* inputs, void* const* outputs) {
  const uint64_t id = call.signature.id;
  const bool is_timed = call.untimed == 0;
  const uint64_t start = is_timed ? now_ticks() : 0;
  bool is_done = call.is_short && exe.core->repeat(id, inputs, outputs, false);
  if (!is_done) {
    const Unlocked unlocked;
    is_done = exe.core->repeat(id, inputs, outputs, true);
  }
  if (!is_timed) {
    --call.untimed;
  } else {
    call.is_short = static_cast<double>(now_ticks() - start) * ns_per_tick() < kShortNs;
    call.untimed = call.is_short && !exe.is_always_timed ? kUntimed : 0;
  }
  return is_done;
}

namespace {

void put(py::dict& named, const py::str& name, PyObject* array) {
  if (PyDict_SetItem(named.ptr(), name.ptr(), array) != 0) throw py::error_already_set();
}

// Costs less than making the same dict.
py::object copy_of(const py::object& dict) {
  auto copy = py::reinterpret_steal<py::object>(PyDict_Copy(dict.ptr()));
  if (!copy) throw py::error_already_set();
  return copy;
}

py::object as_dict(const PyExecutable& exe, const Arrays& results) {
  py::dict named;
  for (size_t i = 0; i < exe.output_names.size(); ++i) put(named, exe.output_names[i], results[i]);
  return std::move(named);
}

bool has_few_arrays(const PyExecutable& exe) {
  return exe.input_names.size() <= kMaxArrays && exe.output_names.size() <= kMaxArrays;
}

// The recent call with arrays as these: `array(i)` is input i.
template <typename Array>
RecentCall* find_call(const PyExecutable& exe, const Array& array) {
  return find_recent(exe, [&](const Repeat::Signature& s) {
    for (size_t i = 0; i < s.inputs.size(); ++i)
      if (!is_same(array(i), s.inputs[i])) return false;
    return true;
  });
}

// False where a run has to be started.
bool run_fresh(const PyExecutable& exe, RecentCall& call, const Addresses& inputs, Arrays& results) {
  const std::vector<TensorView>& outputs = call.signature.outputs;
  Addresses addresses;
  for (size_t i = 0; i < outputs.size(); ++i) {
    addresses[i] = address_of(results.add(make_result(outputs[i])));
  }
  return repeat_addresses(exe, call, inputs.data(), addresses.data());
}

}  // namespace

py::object repeat_by_name(const PyExecutable& exe, const py::dict& feeds) {
  const size_t count = exe.input_names.size();
  if (!has_few_arrays(exe) || feeds.size() != count) return {};
  Arrays held, results;  // another thread may change the dict while the GIL is released
  for (size_t i = 0; i < count; ++i) {
    PyObject* found = PyDict_GetItemWithError(feeds.ptr(), exe.input_names[i].ptr());
    if (!found) {
      PyErr_Clear();
      return {};
    }
    held.add(py::reinterpret_borrow<py::object>(found));
  }
  RecentCall* const call = find_call(exe, [&](size_t i) { return held[i]; });
  if (!call) return {};
  Addresses inputs;
  for (size_t i = 0; i < count; ++i) inputs[i] = address_of(held[i]);
  return run_fresh(exe, *call, inputs, results) ? as_dict(exe, results) : py::object();
}

py::object repeat_in_order(const PyExecutable& exe, const py::args& arrays) {
  const size_t count = exe.input_names.size();
  if (!has_few_arrays(exe) || arrays.size() != count) return {};
  const auto array = [&](size_t i) { return PyTuple_GET_ITEM(arrays.ptr(), i); };  // the tuple holds it
  RecentCall* const call = find_call(exe, array);
  if (!call) return {};
  Arrays results;
  Addresses inputs;
  for (size_t i = 0; i < count; ++i) inputs[i] = address_of(array(i));
  if (!run_fresh(exe, *call, inputs, results)) return {};
  py::list list(exe.output_names.size());
  for (size_t i = 0; i < exe.output_names.size(); ++i) list[i] = py::handle(results[i]);
  return std::move(list);
}

py::object repeat_bound(const PyExecutable& exe, const Feeds& feeds, const BoundResults& bound) {
  if (!bound.call || bound.call->signature.id != bound.fits_id) {
    bound.call = find_recent(exe, [&](const Repeat::Signature& s) {
      for (size_t i = 0; i < s.inputs.size(); ++i)
        if (feeds.views[i].shape != s.inputs[i].shape) return false;
      for (size_t i = 0; i < bound.views.size(); ++i)
        if (bound.views[i].dtype != DType::kUndefined && bound.views[i].shape != s.outputs[i].shape) return false;
      return true;
    });
    if (!bound.call || !has_few_arrays(exe)) return {};
    bound.fits_id = bound.call->signature.id;
  }
  const std::vector<TensorView>& wanted = bound.call->signature.outputs;
  const size_t result_count = wanted.size();
  Arrays results;
  Addresses inputs, outputs;
  const size_t count = feeds.views.size();
  for (size_t i = 0; i < count; ++i) inputs[i] = feeds.views[i].data;
  for (size_t i = 0; i < result_count; ++i) {
    const bool is_bound = i < bound.views.size() && bound.views[i].dtype != DType::kUndefined;
    outputs[i] = is_bound ? bound.views[i].data : address_of(results.add(make_result(wanted[i])));
  }
  if (!repeat_addresses(exe, *bound.call, inputs.data(), outputs.data())) return {};
  if (bound.named) return copy_of(bound.named);
  py::dict named;
  for (size_t i = 0, fresh = 0; i < result_count; ++i) {
    const bool is_bound = !bound.arrays[i].is_none();
    put(named, exe.output_names[i], is_bound ? bound.arrays[i].ptr() : results[fresh++]);
  }
  return std::move(named);
}

}  // namespace asc
