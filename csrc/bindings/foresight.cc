// Prediction of shapes: the forecast by itself, and at work for an executable.
#include "bindings/executable.h"

namespace asc {
namespace {

std::optional<bool> resolve_ahead(const PyExecutable& exe, const std::vector<std::vector<int64_t>>& shapes) {
  const Unlocked unlocked;
  std::vector<Shape> list;
  for (const std::vector<int64_t>& dims : shapes) list.emplace_back(ArrayView<const int64_t>(dims.data(), dims.size()));
  return exe.core->resolve_ahead(list);
}

void foresee(const PyExecutable& exe, double min_confidence, double min_pause, double cpu_share, double free_ns,
             uint64_t max_outstanding, uint64_t patience) {
  const Unlocked unlocked;
  exe.core->foresee({min_confidence, min_pause, cpu_share, free_ns, max_outstanding, patience});
}

}  // namespace

void bind_foresight(py::module_& m) {
  py::class_<Forecast>(m, "Forecast")
      .def(py::init<>())
      .def("observe",
           [](Forecast& f, const std::vector<int64_t>& signature) -> std::optional<std::vector<int64_t>> {
             if (const Forecast::Signature* const next = f.observe(signature)) return *next;
             return std::nullopt;
           })
      .def("rates", &Forecast::rates)
      .def_property_readonly("confidence", &Forecast::confidence)
      .def_property_readonly("observed", &Forecast::observed)
      .def_property_readonly("foreseen", &Forecast::foreseen)
      .def_property_readonly("right", &Forecast::right);

  m.def("resolve_ahead", &resolve_ahead, py::arg("executable"), py::arg("shapes"));
  m.def("foresee", &foresee, py::arg("executable"), py::kw_only(), py::arg("min_confidence"), py::arg("min_pause"),
        py::arg("cpu_share"), py::arg("free_ns"), py::arg("max_outstanding"), py::arg("patience"));
  m.def(
      "wait_foreseen", [](const PyExecutable& exe, double timeout_s) { return exe.core->wait_foreseen(timeout_s); },
      py::arg("executable"), py::arg("timeout_s"), py::call_guard<Unlocked>());
}

}  // namespace asc
