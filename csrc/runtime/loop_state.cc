#include "runtime/loop_state.h"

#include <numeric>

#include "ops/infer.h"

namespace asc {
namespace {

std::vector<int64_t> numbers_from(int64_t i) {
  std::vector<int64_t> numbers(kIterationsInFlight);
  std::iota(numbers.begin(), numbers.end(), i);
  return numbers;
}

}  // namespace

void* IterationNumbers::next(int64_t i, RunContext& run) {
  static const std::vector<int64_t> kFirst = numbers_from(0);  // most loops need no more
  if (i < kIterationsInFlight) return const_cast<int64_t*>(kFirst.data() + i);
  if (i % kIterationsInFlight == 0) {
    numbers_ = std::make_shared<const HostTensor>(
        HostTensor::from(DType::kInt64, Shape{kIterationsInFlight}, numbers_from(i)));
    if (!run.is_inline) run.holdings->kept.push_back(numbers_);
  }
  return const_cast<int64_t*>(numbers_->as<int64_t>() + i % kIterationsInFlight);
}

LoopState::LoopState(RunContext& run, const PlanNode& node, const Level& body, size_t carried)
    : run_(run),
      node_(node),
      body_(body),
      results_(*run.pool, body.plan().outputs.size()),
      carried_(carried),
      scans_(node.node.outputs.size() - carried) {
  for (size_t i = 0; i < scans_.size(); ++i) {
    const TensorType& type = body.plan().values[body.plan().outputs[output_of(i)]].type;
    scans_[i].dtype = type.dtype;
    for (const Dim& d : type.dims) scans_[i].shape.push_back(d.is_static() ? d.value : 0);  // if none runs
  }
}

LoopState::~LoopState() {
  for (Block b : carried_) run_.pool->release(b);
  for (Scanned& s : scans_) {
    run_.pool->release(s.whole);
    for (Block b : s.pieces) run_.pool->release(b);
  }
}

void LoopState::take(std::vector<Argument>& arguments) {
  ++count_;
  for (size_t i = 0; i < carried_.size(); ++i) {
    results_.give_back(1 + i, carried_[i]);
    carried_[i] = results_.take(1 + i);
    arguments[2 + i].view.data = carried_[i].data;
  }
  for (size_t i = 0; i < scans_.size(); ++i) {
    Scanned& s = scans_[i];
    if (const Block piece = results_.take(output_of(i)); piece.data) s.pieces.push_back(piece);
    if (!s.whole.data) continue;
    gather(s, count_ - static_cast<int64_t>(s.pieces.size()));
    results_.set_target(output_of(i), place_of(s, count_), s.bytes);
  }
  results_.give_back(0, results_.take(0));  // whether to go on is known on the host
}

bool LoopState::take_shapes(std::vector<Argument>& arguments) {
  const Plan& plan = body_.plan();
  bool is_alike = body_.whole_schedule() && !plan.host_inputs[0];
  for (size_t i = 0; i < carried_.size(); ++i) {
    Argument& a = arguments[2 + i];
    const Shape& shape = body_.output_shape(1 + i);
    is_alike = is_alike && !plan.host_inputs[2 + i] && a.view.shape == shape;
    a.view.shape = shape;
    a.host = plan.host_outputs[1 + i] == kNoValue ? nullptr : body_.host_output(1 + i);
  }
  for (size_t i = 0; i < scans_.size(); ++i) {
    Scanned& s = scans_[i];
    const Shape& shape = body_.output_shape(output_of(i));
    if (count_ > 1 && shape != s.shape)
      throw GraphError("[loop] Loop '" + node_.node.name + "': scanned output " + std::to_string(i) +
                       " changes its shape from " + s.shape.text() + " to " + shape.text());
    s.shape = shape;
    s.bytes = static_cast<size_t>(shape.num_elements()) * size_of(s.dtype);
  }
  return is_alike;
}

void LoopState::expect(int64_t trips) {
  for (size_t i = 0; i < scans_.size(); ++i) {
    Scanned& s = scans_[i];
    const bool fits = s.bytes && s.bytes % kAlignment == 0 && trips <= kMaxElements / static_cast<int64_t>(s.bytes);
    if (!fits) continue;
    s.whole = run_.pool->allocate_result(static_cast<size_t>(trips) * s.bytes);
    gather(s, 0);
    results_.set_target(output_of(i), place_of(s, count_), s.bytes);
  }
}

void LoopState::take_shapes_of_none() {
  for (size_t i = 0; i < scans_.size(); ++i) scans_[i].shape = body_.output_shape(output_of(i));
}

Block LoopState::take_carried(size_t i, const Argument& argument) {
  if (carried_[i].data) return std::exchange(carried_[i], Block{});
  const size_t bytes = static_cast<size_t>(argument.view.shape.num_elements()) * size_of(argument.view.dtype);
  const Block block = run_.pool->allocate(bytes);
  run_.stream->copy(block.data, argument.view.data, bytes, run_.event);
  return block;
}

Block LoopState::take_scanned(size_t i, Shape& shape) {
  Scanned& s = scans_[i];
  shape = s.shape;
  shape.insert(0, count_);
  if (s.whole.data) return std::exchange(s.whole, Block{});
  s.whole = run_.pool->allocate(s.bytes * s.pieces.size());
  gather(s, 0);
  return std::exchange(s.whole, Block{});
}

std::byte* LoopState::place_of(const Scanned& s, int64_t iteration) {
  return static_cast<std::byte*>(s.whole.data) + static_cast<size_t>(iteration) * s.bytes;
}

void LoopState::gather(Scanned& s, int64_t first) {
  for (const Block& piece : s.pieces) run_.stream->copy(place_of(s, first++), piece.data, s.bytes, run_.event);
  for (const Block& piece : s.pieces) run_.pool->release(piece);
  s.pieces.clear();
}

}  // namespace asc
