#include "bindings/executable.h"

#include <cmath>

#include "bindings/arrays.h"
#include "bindings/module.h"
#include "bindings/unlocked.h"
#include "runtime/interrupt.h"

namespace asc {
namespace {

std::vector<py::str> names(const Plan& plan, const std::vector<ValueId>& values) {
  std::vector<py::str> list;
  for (ValueId v : values) list.emplace_back(plan.values[v].name);
  return list;
}

const PlanValue& value_of(const PyExecutable& exe, const std::vector<ValueId>& values, size_t i) {
  return exe.core->plan().values[values[i]];
}

// Subclasses of ndarray may mean something else by their bytes (masks, for one): normalize looks at them.
bool is_plain_array(py::handle object) { return Py_TYPE(object.ptr()) == py::detail::npy_api::get().PyArray_Type_; }

}  // namespace

std::string text_of(py::handle object) {
  try {
    const py::str text(object);
    return py::bytes(text.attr("encode")("utf-8", "backslashreplace")).cast<std::string>();
  } catch (const py::error_already_set&) {
    return "(an object without text)";
  }
}

namespace {

py::array take_array(const PyExecutable& exe, const PlanValue& value, py::handle object) {
  if (is_plain_array(object)) {
    py::array array = py::reinterpret_borrow<py::array>(object);
    if (is_usable(array, value.type.dtype)) return array;
    ++(dtype_of(array.dtype()) == value.type.dtype && array.dtype().byteorder() != '>' ? exe.copies_for_layout
                                                                                       : exe.copies_for_type);
  }
  py::array array = exe.normalize(value.name, name_of(value.type.dtype), object);
  if (array.ndim() > kMaxRank)
    throw GraphError("[run] input '" + value.name + "': rank " + std::to_string(array.ndim()) + " is above " +
                     std::to_string(kMaxRank) + "; reshape it to fewer dimensions");
  if (!is_usable(array, value.type.dtype))
    throw GraphError("[run] input '" + value.name + "': not convertible to a contiguous array of " +
                     name_of(value.type.dtype));
  return array;
}

void add_feed(const PyExecutable& exe, size_t i, py::handle object, Feeds& feeds) {
  const PlanValue& value = value_of(exe, exe.core->plan().inputs, i);
  py::array array = take_array(exe, value, object);
  feeds.views.push_back(view_of(array, value.type.dtype));
  feeds.held.push_back(std::move(array));
}

[[noreturn]] void complain_of_names(const PyExecutable& exe, const py::dict& given) {
  std::string missing, surplus, known;
  for (const py::str& n : exe.input_names) {
    known += (known.empty() ? "" : ", ") + n.cast<std::string>();
    if (!given.contains(n)) missing += (missing.empty() ? "" : ", ") + n.cast<std::string>();
  }
  for (const auto& item : given) {
    bool is_known = false;
    for (const py::str& n : exe.input_names) is_known = is_known || n.equal(item.first);
    if (!is_known) surplus += (surplus.empty() ? "" : ", ") + text_of(item.first);
  }
  throw GraphError("[run] inputs do not fit:" + (missing.empty() ? "" : " missing " + missing + ";") +
                   (surplus.empty() ? "" : " unknown " + surplus + ";") + " the model takes " + known);
}

}  // namespace

Feeds take_feeds(const PyExecutable& exe, const py::dict& given) {
  Feeds feeds;
  feeds.views.reserve(exe.input_names.size());
  feeds.held.reserve(exe.input_names.size());
  if (given.size() != exe.input_names.size()) complain_of_names(exe, given);
  for (size_t i = 0; i < exe.input_names.size(); ++i) {
    PyObject* found = PyDict_GetItemWithError(given.ptr(), exe.input_names[i].ptr());
    if (!found) complain_of_names(exe, given);
    add_feed(exe, i, found, feeds);
  }
  return feeds;
}

namespace {

Feeds take_positional(const PyExecutable& exe, const py::tuple& given) {
  Feeds feeds;
  if (given.size() != exe.input_names.size())
    throw GraphError("[run] the model takes " + std::to_string(exe.input_names.size()) + " inputs, got " +
                     std::to_string(given.size()) + "; pass them in graph order or by name");
  for (size_t i = 0; i < given.size(); ++i) add_feed(exe, i, given[i], feeds);
  return feeds;
}

py::list results_of(const Run& run, const std::vector<py::object>& bound_arrays) {
  py::list list;
  for (size_t i = 0; i < run.results().size(); ++i) {
    const Run::Result& r = run.results()[i];
    if (r.is_bound)
      list.append(bound_arrays[i]);
    else
      list.append(make_array(r.view, r.fresh));
  }
  return list;
}

// Starts a run and waits for it. Throws its error.
std::shared_ptr<Run> complete_run(const PyExecutable& exe, const Feeds& feeds, const BoundResults& bound) {
  std::shared_ptr<Run> run;
  try {
    const Unlocked unlocked;
    run = exe.core->start(feeds.views, bound.views, false);
    run->wait(-1);
  } catch (const DeviceError&) {
    if (run) keep_if_lost(*run, feeds.held);
    if (run) keep_if_lost(*run, bound.arrays);
    throw;
  }
  return run;
}

}  // namespace

py::list run_now(const PyExecutable& exe, const Feeds& feeds, const BoundResults& bound) {
  const std::shared_ptr<Run> run = complete_run(exe, feeds, bound);
  update_recent(exe);
  return results_of(*run, bound.arrays);
}

py::dict as_dict(const PyExecutable& exe, const py::list& results) {
  py::dict d;
  for (size_t i = 0; i < results.size(); ++i) d[exe.output_names[i]] = results[i];
  return d;
}

namespace {

// A run in flight; keeps the arrays that it reads and writes.
struct PyRun {
  ~PyRun() {
    if (!run->is_done()) {
      const Unlocked unlocked;
      run->complete();
    }
    keep_if_lost(*run, feeds.held);
  }

  Feeds feeds;
  std::vector<py::object> bound_arrays;
  std::vector<py::str> output_names;
  Owned<Run> run;  // released first: members are destroyed in reverse order
};

py::list wait_for(PyRun& r, std::optional<double> timeout) {
  if (timeout && !(*timeout >= 0))
    throw GraphError("[wait] timeout must be 0 or more seconds, got " + std::to_string(*timeout));
  const double ns = timeout ? *timeout * 1e9 : -1;
  {
    const Unlocked unlocked;
    r.run->wait(ns > 9e18 ? -1 : static_cast<int64_t>(ns));
  }
  return results_of(*r.run, r.bound_arrays);
}

py::list signature_of(const PyExecutable& exe, const std::vector<ValueId>& values) {
  py::list list;
  for (size_t i = 0; i < values.size(); ++i) {
    const PlanValue& v = value_of(exe, values, i);
    py::object shape = py::none();
    if (v.type.has_rank) {
      py::tuple dims(v.type.dims.size());
      for (size_t d = 0; d < v.type.dims.size(); ++d) {
        const Dim& dim = v.type.dims[d];
        dims[d] = dim.is_static()      ? py::object(py::int_(dim.value))
                  : dim.symbol.empty() ? py::object(py::none())
                                       : py::object(py::str(dim.symbol));
      }
      shape = dims;
    }
    list.append(py::make_tuple(v.name, name_of(v.type.dtype), shape));
  }
  return list;
}

Mode mode_from_name(const std::string& name) {
  if (name == "host") return Mode::kHost;
  if (name == "sink") return Mode::kSink;
  if (name == "auto") return Mode::kAuto;
  throw PlanError("[compile] mode '" + name + "' is unknown; use \"host\", \"sink\" or \"auto\"");
}

// Without `keep_graph` the plan takes the graph's contents, and leaves it empty.
std::unique_ptr<PyExecutable> compile(const std::shared_ptr<Graph>& graph, const std::string& device,
                                      const std::string& mode, int threads, size_t memory_limit_bytes,
                                      size_t tiling_cache_bytes, size_t schedule_cache_bytes, bool memo, bool fuse,
                                      bool use_onednn, int pipeline_workers, int streams, py::object normalize,
                                      bool keep_graph) {
  ExecutableOptions o;
  o.device = device;
  o.mode = mode_from_name(mode);
  o.settings = {threads, memory_limit_bytes, use_onednn};
  o.use_memo = memo;
  o.fuse = fuse;
  o.tiling_cache_bytes = tiling_cache_bytes;
  o.schedule_cache_bytes = schedule_cache_bytes;
  o.pipeline_workers = pipeline_workers;
  o.streams = streams;
  std::shared_ptr<Executable> core;
  {
    const Unlocked unlocked;
    core = Executable::create(keep_graph ? *graph : std::move(*graph), o);
  }
  auto exe = std::unique_ptr<PyExecutable>(new PyExecutable{Owned<Executable>(core), {}, {}, std::move(normalize)});
  exe->input_names = names(core->plan(), core->plan().inputs);
  exe->output_names = names(core->plan(), core->plan().outputs);
  exe->is_always_timed = core->has_own_operators();
  return exe;
}

}  // namespace

void keep_if_lost(const Run& run, const std::vector<py::object>& objects) {
  if (!run.is_lost()) return;
  for (const py::object& object : objects) object.inc_ref();
}

void bind_executable(py::module_& m) {
  check_interrupt = [] {
    const Locked gil;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  };
  py::detail::npy_api::get();  // looked up once, and then without giving up the lock

  py::class_<PyRun>(m, "Run")
      .def("wait", &wait_for, py::arg("timeout") = py::none())
      .def("cancel", [](PyRun& r) { return r.run->cancel(); })
      .def_property_readonly("is_done", [](const PyRun& r) { return r.run->is_done(); })
      .def_property_readonly("output_names", [](const PyRun& r) { return r.output_names; });

  py::class_<PyExecutable>(m, "Executable")
      .def("call",
           [](const PyExecutable& e, const py::args& args) -> py::object {
             if (py::object done = repeat_in_order(e, args)) return done;
             return run_now(e, take_positional(e, args), {});
           })
      .def("run",
           [](const PyExecutable& e, const py::dict& feeds) -> py::object {
             if (py::object done = repeat_by_name(e, feeds)) return done;
             return as_dict(e, run_now(e, take_feeds(e, feeds), {}));
           })
      .def("run_async",
           [](const PyExecutable& e, const py::dict& given) {
             Feeds feeds = take_feeds(e, given);
             std::shared_ptr<Run> run;
             {
               const Unlocked unlocked;
               run = e.core->start(feeds.views, {}, true);
             }
             return std::unique_ptr<PyRun>(new PyRun{std::move(feeds), {}, e.output_names, Owned<Run>(std::move(run))});
           })
      .def("warm_up",
           [](const PyExecutable& e, const py::dict& given) {
             const Feeds feeds = take_feeds(e, given);
             const Unlocked unlocked;
             e.core->warm_up(feeds.views);
           })
      .def_property_readonly("inputs", [](const PyExecutable& e) { return signature_of(e, e.core->plan().inputs); })
      .def_property_readonly("outputs", [](const PyExecutable& e) { return signature_of(e, e.core->plan().outputs); })
      .def_property_readonly("host_inputs", [](const PyExecutable& e) { return e.core->plan().host_inputs; })
      .def_property_readonly("plan_text", [](const PyExecutable& e) { return e.core->plan().text(); })
      .def_property_readonly("dynamic_reasons", [](const PyExecutable& e) { return e.core->plan().dynamic_reasons; })
      .def(
          "explain", [](PyExecutable& e) { return e.core->explain(); }, py::call_guard<Unlocked>())
      .def(
          "stats",
          [](PyExecutable& e) {
            Stats stats = e.core->stats();
            stats.emplace_back("input_copies_for_layout", static_cast<double>(e.copies_for_layout));
            stats.emplace_back("input_copies_for_type", static_cast<double>(e.copies_for_type));
            return stats;
          },
          py::call_guard<Unlocked>())
      .def(
          "resize_caches", [](PyExecutable& e, size_t t, size_t s) { e.core->resize_caches(t, s); },
          py::arg("tiling_bytes"), py::arg("schedule_bytes"), py::call_guard<Unlocked>())
      .def(
          "resize_workers", [](PyExecutable& e, int workers) { e.core->resize_workers(workers); }, py::arg("workers"),
          py::call_guard<Unlocked>())
      .def(
          "drop_cache_entries", [](PyExecutable& e, size_t n) { e.core->drop_cache_entries(n); },
          py::call_guard<Unlocked>())
      .def(
          "find_race", [](PyExecutable& e) { return e.core->find_race(); }, py::call_guard<Unlocked>())
      .def(
          "start_profile", [](PyExecutable& e, size_t bytes) { e.core->start_recording(bytes); },
          py::arg("capacity_bytes"), py::call_guard<Unlocked>())
      .def("stop_profile", &stop_profile);

  m.def("compile", &compile, py::arg("graph"), py::kw_only(), py::arg("device"), py::arg("mode"), py::arg("threads"),
        py::arg("memory_limit_bytes"), py::arg("tiling_cache_bytes"), py::arg("schedule_cache_bytes"), py::arg("memo"),
        py::arg("fuse"), py::arg("use_onednn"), py::arg("pipeline_workers"), py::arg("streams"), py::arg("normalize"),
        py::arg("keep_graph"));
}

}  // namespace asc
