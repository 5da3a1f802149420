#include "host/pipeline_choice.h"

#include <algorithm>
#include <cstdio>

namespace asc {
namespace {

std::string us(double ns) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f us", ns * 1e-3);
  return text;
}

}  // namespace

PipelineShape asked_shape(int workers, int cpus) {
  return workers > 1 || cpus > 2 ? PipelineShape::kThreeStages : PipelineShape::kResolveThenRest;
}

PipelineChoice choose_pipeline(const StageCosts& c, int cpus) {
  PipelineChoice choice;
  choice.serial_ns = choice.predicted_ns = c.resolve_ns + c.place_ns + c.launch_ns;
  if (cpus < 2 || choice.serial_ns * static_cast<double>(c.nodes) < kPipelineMinNs) return choice;
  // The slowest stage sets the pace, unless there are not enough CPUs for all of them.
  const double hand_over = kHandOverNs / kNodesPerHandOver;
  const double two = std::max(c.resolve_ns, c.place_ns + c.launch_ns) + hand_over;
  const double three = std::max({c.resolve_ns, c.place_ns, c.launch_ns, choice.serial_ns / cpus}) + hand_over;
  const PipelineShape shape =
      three < two * kPipelineGain ? PipelineShape::kThreeStages : PipelineShape::kResolveThenRest;
  const double best = shape == PipelineShape::kThreeStages ? three : two;
  if (best >= choice.serial_ns * kPipelineGain) return choice;
  choice.shape = shape;
  choice.predicted_ns = best;
  return choice;
}

std::string describe_choice(const StageCosts& c, int cpus) {
  if (c.nodes == 0) return "not measured yet: a run that does not execute on the calling thread measures it";
  const PipelineChoice choice = choose_pipeline(c, cpus);
  const std::string costs = "a node takes " + us(c.resolve_ns) + " to resolve, " + us(c.place_ns) + " to place, " +
                            us(c.launch_ns) + " to launch";
  if (choice.shape == PipelineShape::kSerial) {
    const double two = std::max(c.resolve_ns, c.place_ns + c.launch_ns) + kHandOverNs / kNodesPerHandOver;
    return "serial: " + costs + "; a pipeline would need less than " + us(choice.serial_ns * kPipelineGain) +
           " a node and takes " + us(two) + (cpus < 2 ? ", and there is one CPU" : "");
  }
  return std::string(choice.shape == PipelineShape::kThreeStages ? "pipelined in three stages: "
                                                                 : "pipelined in two stages: ") +
         costs + "; predicted " + us(choice.predicted_ns) + " a node, serial " + us(choice.serial_ns);
}

}  // namespace asc
