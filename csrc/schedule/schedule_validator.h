// Checks the memory and the streams of a schedule, in the plainest way there is; shares no code with what made them.
#pragma once

#include <string>

#include "schedule/schedule.h"

namespace asc {

// Empty where every task reads what was written for it, in whatever order the streams go on: between the task that
// writes a slot and each that reads it, in the order that streams and points alone impose, no other task writes to the
// slot's memory, the last reader itself excepted. Otherwise what is wrong first. Quadratic in tasks.
std::string find_race(const Schedule& schedule);

}  // namespace asc
