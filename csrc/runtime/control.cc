// Control flow: the runtime drives bodies as levels of their own.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "runtime/interrupt.h"
#include "runtime/level.h"

namespace asc {
namespace {

constexpr int64_t kIterationsInFlight = 64;  // of a loop, before the host waits: bounds the tables held

template <typename T>
Argument scalar_argument(DType dtype, T value, RunContext& run) {
  auto host = std::make_shared<const HostTensor>(HostTensor::from(dtype, Shape{}, std::vector<T>{value}));
  run.holdings->kept.push_back(host);
  return {{dtype, Shape{}, const_cast<void*>(host->data())}, host};
}

// The numbers of iterations, where tasks read them: those in flight at once in one piece of memory.
class IterationNumbers {
 public:
  // Called for each iteration in turn; what is given out lives until holdings release it, and in runs on the caller's
  // thread until the next call.
  Argument next(int64_t i, RunContext& run) {
    if (i % kIterationsInFlight == 0) {
      std::vector<int64_t> numbers(kIterationsInFlight);
      std::iota(numbers.begin(), numbers.end(), i);
      numbers_ =
          std::make_shared<const HostTensor>(HostTensor::from(DType::kInt64, Shape{kIterationsInFlight}, numbers));
      if (!run.is_inline) run.holdings->kept.push_back(numbers_);
    }
    return {{DType::kInt64, Shape{}, const_cast<int64_t*>(numbers_->as<int64_t>() + i % kIterationsInFlight)}, nullptr};
  }

 private:
  std::shared_ptr<const HostTensor> numbers_;
};

bool is_true(const HostTensor& t) { return t.shape.num_elements() == 1 && *t.as<uint8_t>() != 0; }

int64_t trip_count(const HostTensor& t, const PlanNode& node) {
  if (t.shape.num_elements() != 1)
    throw GraphError("[loop] Loop '" + node.node.name + "': trip count has shape " + t.shape.text() +
                     ", expected a scalar");
  return std::max<int64_t>(int_values(t)[0], 0);  // a negative one runs no iteration; it is not "no trip count"
}

// Per-iteration results of one scanned output.
struct Scanned {
  std::vector<Block> pieces;
  Shape shape;
};

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

namespace {

// State of one loop while it runs; owns the blocks between iterations.
class LoopState {
 public:
  LoopState(RunContext& run, size_t carried, size_t scanned) : run_(run), blocks_(carried), scans_(scanned) {}
  ~LoopState() {
    for (Block b : blocks_) run_.pool->release(b);
    for (Scanned& s : scans_)
      for (Block b : s.pieces) run_.pool->release(b);
  }

  void take(const Level& body, BodyResults& results, std::vector<Argument>& arguments, const PlanNode& node) {
    for (size_t i = 0; i < blocks_.size(); ++i) {
      Argument& a = arguments[2 + i];
      run_.pool->release(blocks_[i]);
      blocks_[i] = results.take(1 + i);
      a.view.shape = body.output_shape(1 + i);
      a.view.data = blocks_[i].data;
      a.host = body.plan().host_outputs[1 + i] == kNoValue ? nullptr : body.host_output(1 + i);
    }
    for (size_t i = 0; i < scans_.size(); ++i) {
      const size_t output = 1 + blocks_.size() + i;
      const Shape& shape = body.output_shape(output);
      if (!scans_[i].pieces.empty() && shape != scans_[i].shape)
        throw GraphError("[loop] Loop '" + node.node.name + "': scanned output " + std::to_string(i) +
                         " changes its shape from " + scans_[i].shape.text() + " to " + shape.text());
      scans_[i].shape = shape;
      scans_[i].pieces.push_back(results.take(output));
    }
    run_.pool->release(results.take(0));  // whether to go on is known on the host
  }

  Block take_carried(size_t i, const Argument& argument) {
    if (blocks_[i].data) return std::exchange(blocks_[i], Block{});
    const size_t bytes = static_cast<size_t>(argument.view.shape.num_elements()) * size_of(argument.view.dtype);
    Block block = run_.pool->allocate(bytes);  // no iteration ran: the initial value is the result
    run_.stream->copy(block.data, argument.view.data, bytes, run_.event);
    return block;
  }

  // The pieces side by side along a new first axis.
  Block stack(size_t i, DType dtype, Shape& shape) {
    Scanned& s = scans_[i];
    const size_t bytes = static_cast<size_t>(s.shape.num_elements()) * size_of(dtype);
    shape = s.shape;
    shape.insert(0, static_cast<int64_t>(s.pieces.size()));
    Block all = run_.pool->allocate(bytes * s.pieces.size());
    for (size_t p = 0; p < s.pieces.size(); ++p)
      run_.stream->copy(static_cast<std::byte*>(all.data) + p * bytes, s.pieces[p].data, bytes, run_.event);
    return all;
  }
  void set_empty_shape(size_t i, const TensorType& type) {
    if (!scans_[i].pieces.empty()) return;
    for (const Dim& d : type.dims) scans_[i].shape.push_back(d.is_static() ? d.value : 0);
  }

 private:
  RunContext& run_;
  std::vector<Block> blocks_;
  std::vector<Scanned> scans_;
};

}  // namespace

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
  std::vector<Argument> arguments(2);
  for (size_t i = 2; i < in.size(); ++i) arguments.push_back(argument(in[i], body_plan.host_inputs[i]));
  LoopState state(run, carried, node.node.outputs.size() - carried);
  BodyResults results(*run.pool, body_plan.outputs.size());
  IterationNumbers numbers;
  arguments[1] = scalar_argument<uint8_t>(DType::kBool, 1, run);
  const size_t table_count = run.holdings->tables.size(), kept_count = run.holdings->kept.size();
  InterruptPoll interrupt;
  for (int64_t i = 0; go_on && (trips < 0 || i < trips); ++i) {
    interrupt.poll();
    const bool is_full = i > 0 && i % kIterationsInFlight == 0;
    if (!run.is_inline && is_full) sync(run, static_cast<int32_t>(node.number));
    if (run.is_inline || is_full) run.holdings->release(table_count, kept_count);
    arguments[0] = body_plan.host_inputs[0] ? scalar_argument<int64_t>(DType::kInt64, i, run) : numbers.next(i, run);
    body.run(run, arguments, results);
    state.take(body, results, arguments, node);
    if (run.is_inline && run.event->has_failed()) throw RunAborted{};
    go_on = is_true(*body.host_output(0));
  }
  for (size_t i = 0; i < carried; ++i)
    set_result(node.node.outputs[i], arguments[2 + i].view.shape, state.take_carried(i, arguments[2 + i]), run);
  for (size_t i = carried; i < node.node.outputs.size(); ++i) {
    const PlanValue& piece = body_plan.values[body_plan.outputs[1 + i]];
    state.set_empty_shape(i - carried, piece.type);
    Shape shape;
    const Block all = state.stack(i - carried, piece.type.dtype, shape);
    set_result(node.node.outputs[i], shape, all, run);
  }
  if (segment.read_backs.empty()) return;
  sync(run, static_cast<int32_t>(node.number));
  read_back(segment.read_backs);
}

}  // namespace asc
