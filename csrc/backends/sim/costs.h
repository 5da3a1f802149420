// What the simulated device and its host take for each thing that they do; where nothing is given, no time.
// `ascendsched/sim/cost_profile.py` says what each figure means, and reads it from a file with its source.
#pragma once

#include <cstdint>
#include <string>

#include "kernel/work.h"

namespace asc {

struct SimCosts {
  double framework_us = 0, run_us = 0, infer_shape_us = 0, tiling_us = 0, tiling_hit_us = 0, alloc_us = 0;
  double launch_us = 0, submit_us = 0, sync_us = 0, handover_us = 0;
  double workers = 0;  // that make tilings; 0: one thread does all
  double matrix_tflops = 1e9, matrix_int8_tops = 1e9, vector_tflops = 1e9, memory_gbps = 1e9;
  double matrix_efficiency = 1, memory_efficiency = 1;
  double kernel_us = 0, queued_gap_us = 0, chain_gap_us = 0, latency_us = 0;
  double queue_depth = 1024;
  double float_bytes = 4;  // that a float32 of the graph takes on the device

  // False for a name that is none of the above, or a figure that it cannot have.
  bool set(const std::string& name, double value);
  // Roofline model: Williams, Waterman and Patterson, CACM 52(4), 2009.
  int64_t kernel_ns(const Work& work) const;
};

}  // namespace asc
