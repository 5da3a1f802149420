// Prediction of shapes: the forecast by itself, and at work for an executable.
#include "bindings/executable.h"
#include "schedule/keyed_cache.h"
#include "schedule/retention.h"

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

// (due, incoming, the index of what went): runs until each entry is due, -1 where it is not foreseen; the index is -1
// where the new one was not kept, and none where the cache's own rule decided.
using Told = std::tuple<std::vector<int64_t>, int64_t, std::optional<int64_t>>;

int64_t told(uint32_t due) { return due == kNotForeseen ? -1 : static_cast<int64_t>(due); }

uint32_t due_of(int64_t told) {
  if (told >= kNotForeseen || told < -1)
    throw PlanError("[retention] due in " + std::to_string(told) + " runs; expected 1 to 4294967294, -1 for never");
  return told < 0 ? kNotForeseen : static_cast<uint32_t>(told);
}

std::optional<int64_t> victim_of(const Retention& made) {
  if (made.choice == Retention::Choice::kUnforeseen) return std::nullopt;
  return made.choice == Retention::Choice::kIncoming ? -1 : static_cast<int64_t>(made.entry);
}

std::optional<int64_t> choose(const std::vector<int64_t>& due, int64_t incoming) {
  std::vector<uint32_t> runs;
  for (int64_t d : due) runs.push_back(due_of(d));
  return victim_of(choose_victim({runs.data(), runs.size()}, due_of(incoming)));
}

std::vector<Told> take_decisions(const PyExecutable& exe) {
  std::vector<Outlook::Decision> taken;
  {
    const Unlocked unlocked;
    taken = exe.core->take_decisions();
  }
  std::vector<Told> list;
  for (const Outlook::Decision& d : taken) {
    std::vector<int64_t> due;
    for (uint32_t runs : d.due) due.push_back(told(runs));
    list.emplace_back(std::move(due), told(d.incoming), victim_of(d.made));
  }
  return list;
}

// A forecast as a cache's outlook, trusted from `confidence` on.
class ForecastOutlook final : public Outlook {
 public:
  explicit ForecastOutlook(double confidence) : confidence_(confidence) {}
  std::vector<uint64_t> coming() override {
    return forecast.confidence() < confidence_ ? std::vector<uint64_t>{} : forecast.coming();
  }
  void note_gone(uint64_t) override {}
  void note_decision(Decision) override {}

  Forecast forecast;

 private:
  const double confidence_;
};

// Hits of a cache of so many equal entries that each signature is looked up in, and put into where it is missing. From
// a `confidence` up to 1 on, forecasts say what stays.
uint64_t measure_retention(const std::vector<std::vector<int64_t>>& signatures, size_t entries, double confidence) {
  constexpr size_t kBytes = 1000;
  ForecastOutlook outlook(confidence);
  Key key;
  key.add(0);
  const auto value = std::make_shared<int>(0);
  KeyedCache<int> cache(entries * KeyedCache<int>(~size_t{0} >> 1).insert(key, value, kBytes));
  if (confidence <= 1) cache.set_outlook(&outlook);
  for (const std::vector<int64_t>& signature : signatures) {
    const uint64_t symbol = Forecast::symbol_of({signature.data(), signature.size()});
    if (confidence <= 1) outlook.forecast.observe({signature.data(), signature.size()});
    key.clear();
    key.add(symbol);
    if (!cache.find(key) && cache.would_keep(symbol)) cache.insert(key, value, kBytes, symbol);
  }
  return cache.counters().hits;
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

  m.def("choose_victim", &choose, py::arg("due"), py::arg("incoming"));
  m.def("take_decisions", &take_decisions, py::arg("executable"));
  m.def("measure_retention", &measure_retention, py::arg("signatures"), py::arg("entries"), py::arg("confidence"),
        py::call_guard<Unlocked>());
  m.def("resolve_ahead", &resolve_ahead, py::arg("executable"), py::arg("shapes"));
  m.def("foresee", &foresee, py::arg("executable"), py::kw_only(), py::arg("min_confidence"), py::arg("min_pause"),
        py::arg("cpu_share"), py::arg("free_ns"), py::arg("max_outstanding"), py::arg("patience"));
  m.def(
      "wait_foreseen", [](const PyExecutable& exe, double timeout_s) { return exe.core->wait_foreseen(timeout_s); },
      py::arg("executable"), py::arg("timeout_s"), py::call_guard<Unlocked>());
}

}  // namespace asc
