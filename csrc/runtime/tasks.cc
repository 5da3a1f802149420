// Executable::tasks: what each task works on, for models of its cost.
#include "runtime/executable.h"

namespace asc {
namespace {

TaskInfo::Operand make_operand(const Level& level, ValueId v) {
  if (v == kNoValue) return {};
  const PlanValue& value = level.plan().values[v];
  return {value.type.dtype, value.constant ? value.constant->shape : level.resolver().shape(v),
          value.constant != nullptr};
}

TaskInfo make_task_info(const Level& level, size_t s, const PlanNode& node, size_t n) {
  TaskInfo info;
  info.number = node.number;
  if (const std::shared_ptr<const Tiling>& tiling = level.resolver().tiling(s, n))
    info.implementation = tiling->implementation;
  for (ValueId v : node.node.inputs) info.inputs.push_back(make_operand(level, v));
  for (ValueId v : node.node.outputs) info.outputs.push_back(make_operand(level, v));
  for (const Node& part : node.parts) info.parts.push_back(part.op);
  return info;
}

void add_tasks(const Level& level, std::vector<TaskInfo>& tasks) {
  const Plan& plan = level.plan();
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    const Segment& segment = plan.segments[s];
    for (size_t n = 0; n < segment.nodes.size(); ++n)
      if (segment.nodes[n].is_task()) tasks.push_back(make_task_info(level, s, segment.nodes[n], n));
    for (size_t b = 0; b < segment.bodies.size(); ++b) add_tasks(level.body(s, b), tasks);
  }
}

}  // namespace

std::vector<TaskInfo> Executable::tasks() {
  check_process();
  const std::unique_lock<std::mutex> guard = lock();
  std::vector<TaskInfo> tasks;
  add_tasks(*root_, tasks);
  return tasks;
}

}  // namespace asc
