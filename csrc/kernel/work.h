// What a task has to do on any device: operations and bytes. `ascendsched/sim/work.py` counts alike; a test compares.
#pragma once

#include "kernel/kernel.h"

namespace asc {

struct Work {
  double matrix = 0, vector = 0;  // operations
  double floats = 0, bytes = 0;   // moved: elements of float32, and bytes of all else
  bool is_int8 = false;           // of the product
};

Work work_of(const TilingContext& ctx);

}  // namespace asc
