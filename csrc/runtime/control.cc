// Control flow: the runtime drives bodies as levels of their own.
#include <algorithm>

#include "runtime/interrupt.h"
#include "runtime/level.h"
#include "runtime/loop_state.h"

namespace asc {
namespace {

template <typename T>
Argument scalar_argument(DType dtype, T value, RunContext& run) {
  auto host = std::make_shared<const HostTensor>(HostTensor::from(dtype, Shape{}, std::vector<T>{value}));
  run.holdings->kept.push_back(host);
  return {{dtype, Shape{}, const_cast<void*>(host->data())}, host};
}

bool is_true(const HostTensor& t) { return t.shape.num_elements() == 1 && *t.as<uint8_t>() != 0; }

int64_t trip_count(const HostTensor& t, const PlanNode& node) {
  if (t.shape.num_elements() != 1)
    throw GraphError("[loop] Loop '" + node.node.name + "': trip count has shape " + t.shape.text() +
                     ", expected a scalar");
  return std::max<int64_t>(int_values(t)[0], 0);  // a negative one runs no iteration; it is not "no trip count"
}

}  // namespace

void Level::run_if(size_t s, RunContext& run) {
  const Segment& segment = plan_->segments[s];
  const PlanNode& node = segment.nodes[0];
  const HostTensor& condition = *resolver_.host(node.node.inputs[0]);
  if (condition.shape.num_elements() != 1)
    throw GraphError("[if] If '" + node.node.name + "': condition has shape " + condition.shape.text() +
                     ", expected one element");
  Level& body = *segments_[s].bodies[is_true(condition) ? 0 : 1];
  std::vector<Argument> arguments;
  for (size_t i = 1; i < node.node.inputs.size(); ++i)
    arguments.push_back(argument(node.node.inputs[i], body.plan().host_inputs[i - 1]));
  BodyResults results(*run.pool, node.node.outputs.size());
  body.run(run, arguments, results);
  for (size_t i = 0; i < node.node.outputs.size(); ++i)
    set_result(node.node.outputs[i], body.output_shape(i), results.take(i), run);
  if (segment.read_backs.empty()) return;
  sync(run, static_cast<int32_t>(node.number));
  read_back(segment.read_backs);
}

void Level::run_loop(size_t s, RunContext& run) {
  const Segment& segment = plan_->segments[s];
  const PlanNode& node = segment.nodes[0];
  Level& body = *segments_[s].bodies[0];
  const Plan& body_plan = body.plan();
  const std::vector<ValueId>& in = node.node.inputs;
  const size_t carried = in.size() - 2 - static_cast<size_t>(node.node.attributes.get_int("num_captures", 0));
  const int64_t trips = in[0] == kNoValue ? -1 : trip_count(*resolver_.host(in[0]), node);
  bool go_on = in[1] == kNoValue || is_true(*resolver_.host(in[1]));
  const PlanValue& condition = body_plan.values[body_plan.host_outputs[0]];
  if (trips < 0 && condition.constant && is_true(*condition.constant))
    throw GraphError("[loop] Loop '" + node.node.name +
                     "' never ends: no trip count and a condition that is always true");
  std::vector<Argument> arguments;
  arguments.reserve(in.size());
  arguments.resize(2);
  arguments[0].view.dtype = DType::kInt64;
  for (size_t i = 2; i < in.size(); ++i) arguments.push_back(argument(in[i], body_plan.host_inputs[i]));
  LoopState state(run, node, body, carried);
  IterationNumbers numbers;
  arguments[1] = scalar_argument<uint8_t>(DType::kBool, 1, run);
  const size_t table_count = run.holdings->tables.size(), kept_count = run.holdings->kept.size();
  InterruptPoll interrupt;
  bool is_alike = false;  // the next iteration, and all behind it, to the last one
  for (int64_t i = 0; go_on && (trips < 0 || i < trips); ++i) {
    interrupt.poll();
    const bool is_full = i > 0 && i % kIterationsInFlight == 0;
    if (!run.is_inline && is_full) sync(run, static_cast<int32_t>(node.number));
    if (run.is_inline || is_full) run.holdings->release(table_count, kept_count);
    if (body_plan.host_inputs[0])
      arguments[0] = scalar_argument<int64_t>(DType::kInt64, i, run);
    else
      arguments[0].view.data = numbers.next(i, run);
    if (is_alike)
      body.run_again(run, arguments, state.results());
    else
      body.run(run, arguments, state.results());
    state.take(arguments);
    if (run.is_inline && run.event->has_failed()) throw RunAborted{};
    if (is_alike) continue;
    is_alike = state.take_shapes(arguments);
    go_on = is_true(*body.host_output(0));
    if (is_alike && go_on && trips > i + 1) state.expect(trips);
  }
  if (!state.has_run() && carried < node.node.outputs.size()) {
    if (body_plan.host_inputs[0]) arguments[0] = scalar_argument<int64_t>(DType::kInt64, 0, run);
    if (body.infer_shapes(run, arguments)) state.take_shapes_of_none();
  }
  for (size_t i = 0; i < carried; ++i)
    set_result(node.node.outputs[i], arguments[2 + i].view.shape, state.take_carried(i, arguments[2 + i]), run);
  for (size_t i = carried; i < node.node.outputs.size(); ++i) {
    Shape shape;
    const Block all = state.take_scanned(i - carried, shape);
    set_result(node.node.outputs[i], shape, all, run);
  }
  if (segment.read_backs.empty()) return;
  sync(run, static_cast<int32_t>(node.number));
  read_back(segment.read_backs);
}

}  // namespace asc
