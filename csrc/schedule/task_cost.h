// How long a task may take: a rough estimate from shapes alone, good enough to tell branches that are worth a stream of
// their own from those that are not.
#pragma once

#include <cstddef>
#include <vector>

#include "schedule/resolver.h"
#include "schedule/stream_planner.h"

namespace asc {

// Nanoseconds of the task of node `n`, as resolved last, on one thread of a CPU.
double estimate_task_ns(const Resolver& resolver, size_t s, size_t n);

// The tasks of segment `s`, as resolved last, with what they depend on. `task_ns`: what every task takes; 0: estimated.
std::vector<StreamTask> make_stream_tasks(const Resolver& resolver, size_t s, double task_ns);

}  // namespace asc
