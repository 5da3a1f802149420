// Whether the three stages of a segment are worth a pipeline, and where to cut it: a pure function of measured costs.
#pragma once

#include <string>

#include "host/host_segment.h"

namespace asc {

enum class PipelineShape : uint8_t {
  kSerial,           // all on the launching thread
  kResolveThenRest,  // resolve | place and launch
  kThreeStages,      // resolve | place | launch
};

struct PipelineChoice {
  PipelineShape shape = PipelineShape::kSerial;
  double serial_ns = 0, predicted_ns = 0;  // of a node
};

// What handing a batch to a parked worker costs, shared by the nodes of a batch: a futex wake-up on each side.
constexpr double kHandOverNs = 3000;
constexpr double kNodesPerHandOver = 4;
// A pipeline has to win this much to be worth its threads, and a segment has to last this long.
constexpr double kPipelineGain = 0.85;
constexpr double kPipelineMinNs = 50'000;

// The shape for a number of workers that the user asked for. A worker for memory alone is waited for by the next one,
// for which the system then often finds no CPU, where there are but two: it launches as well.
PipelineShape asked_shape(int workers, int cpus);

PipelineChoice choose_pipeline(const StageCosts& costs, int cpus);

// The choice in words, with the break-even.
std::string describe_choice(const StageCosts& costs, int cpus);

}  // namespace asc
