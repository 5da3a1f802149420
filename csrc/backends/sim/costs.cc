#include "backends/sim/costs.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace asc {

bool SimCosts::set(const std::string& name, double value) {
  using C = SimCosts;
  static const std::map<std::string, double C::*> times = {{"framework_us", &C::framework_us},
                                                           {"run_us", &C::run_us},
                                                           {"infer_shape_us", &C::infer_shape_us},
                                                           {"tiling_us", &C::tiling_us},
                                                           {"tiling_hit_us", &C::tiling_hit_us},
                                                           {"alloc_us", &C::alloc_us},
                                                           {"launch_us", &C::launch_us},
                                                           {"submit_us", &C::submit_us},
                                                           {"sync_us", &C::sync_us},
                                                           {"handover_us", &C::handover_us},
                                                           {"kernel_us", &C::kernel_us},
                                                           {"queued_gap_us", &C::queued_gap_us},
                                                           {"chain_gap_us", &C::chain_gap_us},
                                                           {"latency_us", &C::latency_us},
                                                           {"workers", &C::workers}};
  static const std::map<std::string, double C::*> rates = {
      {"matrix_tflops", &C::matrix_tflops}, {"matrix_int8_tops", &C::matrix_int8_tops},
      {"vector_tflops", &C::vector_tflops}, {"memory_gbps", &C::memory_gbps},
      {"queue_depth", &C::queue_depth},     {"matrix_efficiency", &C::matrix_efficiency},
      {"float_bytes", &C::float_bytes},     {"memory_efficiency", &C::memory_efficiency}};
  constexpr double kLeastRate = 1e-9, kMost = 1e9, kMostWorkers = 14;
  const auto time = times.find(name), rate = rates.find(name);
  if (time != times.end() && value >= 0 && value <= (name == "workers" ? kMostWorkers : kMost))
    this->*time->second = value;
  else if (rate != rates.end() && value >= (name == "queue_depth" ? 1 : kLeastRate) && value <= kMost)
    this->*rate->second = value;
  else
    return false;
  return true;
}

int64_t SimCosts::kernel_ns(const Work& work) const {
  const double peak = work.is_int8 ? matrix_int8_tops : matrix_tflops;
  const double matrix = work.matrix / (peak * 1e3 * matrix_efficiency);
  const double vector = work.vector / (vector_tflops * 1e3);
  const double memory = (work.floats * float_bytes + work.bytes) / (memory_gbps * memory_efficiency);
  constexpr double kMostNs = 1e15;  // eleven days: sums of such times stay far from overflow
  return static_cast<int64_t>(std::nearbyint(std::min(kMostNs, std::max({matrix, vector, memory, kernel_us * 1e3}))));
}

}  // namespace asc
