#include <chrono>

#include "bindings/module.h"
#include "bindings/unlocked.h"
#include "schedule/memory_solver.h"
#include "schedule/memory_validator.h"

namespace asc {
namespace {

using Lifetimes = std::vector<std::tuple<int64_t, int64_t, int64_t>>;
using Conflicts = std::vector<std::pair<uint32_t, uint32_t>>;

constexpr std::chrono::milliseconds kBetweenSignals{50};

MemoryProblem make_problem(const Lifetimes& buffers, int64_t alignment, const Conflicts& conflicts) {
  MemoryProblem problem;
  problem.alignment = alignment;
  problem.conflicts = conflicts;
  for (const auto& [lower, upper, bytes] : buffers) problem.buffers.push_back({lower, upper, bytes});
  return problem;
}

py::tuple plan_memory(const Lifetimes& buffers, int64_t alignment, const Conflicts& conflicts,
                      std::optional<int64_t> capacity, uint64_t steps, std::optional<double> time_limit,
                      const py::object& on_better) {
  using Clock = std::chrono::steady_clock;
  const MemoryProblem problem = make_problem(buffers, alignment, conflicts);
  const Clock::time_point start = Clock::now();
  Clock::time_point next_signals = start + kBetweenSignals;
  bool is_interrupted = false;
  MemoryLimits limits;
  limits.capacity = capacity.value_or(-1);
  limits.steps = steps;
  limits.should_stop = [&] {
    const Clock::time_point now = Clock::now();
    if (time_limit && std::chrono::duration<double>(now - start).count() >= *time_limit) return true;
    if (now < next_signals) return is_interrupted;
    next_signals = now + kBetweenSignals;
    const Locked gil;
    if (PyErr_CheckSignals() == 0) return is_interrupted;
    if (!PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) throw py::error_already_set();
    PyErr_Clear();
    return is_interrupted = true;
  };
  if (!on_better.is_none())
    limits.on_better = [&](int64_t height, int64_t lower_bound) {
      const Locked gil;
      on_better(height, lower_bound);
    };
  MemorySolution solution;
  {
    const Unlocked unlocked;
    solution = solve_memory(problem, limits);
  }
  return py::make_tuple(solution.offsets, solution.height, solution.lower_bound, solution.steps, is_interrupted);
}

}  // namespace

void bind_memory(py::module_& m) {
  m.def("plan_memory", plan_memory, py::arg("buffers"), py::arg("alignment"), py::arg("conflicts"), py::arg("capacity"),
        py::arg("steps"), py::arg("time_limit"), py::arg("on_better"));
  m.def(
      "find_memory_fault",
      [](const Lifetimes& buffers, int64_t alignment, const Conflicts& conflicts, std::vector<int64_t> offsets,
         int64_t height) {
        const MemoryProblem problem = make_problem(buffers, alignment, conflicts);
        check_problem(problem);
        const Unlocked unlocked;
        MemorySolution solution;
        solution.offsets = std::move(offsets);
        solution.height = height;
        return find_fault(problem, solution);
      },
      py::arg("buffers"), py::arg("alignment"), py::arg("conflicts"), py::arg("offsets"), py::arg("height"));
}

}  // namespace asc
