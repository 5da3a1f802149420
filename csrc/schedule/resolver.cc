#include "schedule/resolver.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "ops/host_call.h"
#include "schedule/tables.h"

namespace asc {
namespace {

constexpr size_t kMaxTensorBytes = size_t{1} << 47;  // the address space of a process

}  // namespace

Resolver::Resolver(const Plan& plan, ResolveContext& context) : plan_(plan), context_(context) {
  states_.resize(plan.values.size());
  stamps_.resize(plan.values.size(), 0);
  for (size_t v = 0; v < states_.size(); ++v) {
    if (!plan.values[v].constant) continue;
    states_[v].shape = plan.values[v].constant->shape;
    states_[v].host = plan.values[v].constant;
  }
  std::string missing;
  producers_.resize(plan.values.size(), nullptr);
  for (const Segment& s : plan.segments) {
    memos_.emplace_back(s.nodes.size());
    for (size_t n = 0; n < s.nodes.size(); ++n) {
      prepare(s.nodes[n], memos_.back()[n], missing);
      for (ValueId v : s.nodes[n].node.outputs)
        if (v != kNoValue) producers_[v] = &memos_.back()[n];
    }
  }
  if (!missing.empty())
    throw UnsupportedError(context_.device == "cpu"
                               ? "[compile] no kernel for: " + missing +
                                     "; convert these to float32 in the model or keep onnxruntime for it"
                               : "[compile] device '" + context_.device + "' has no kernel for: " + missing +
                                     "; run the model on another device");
  find_kinds();
}

// Nodes whose shapes and tilings follow from the same inputs by the same rules.
void Resolver::find_kinds() {
  std::unordered_map<const TilingCache::Instance*, NodeMemo*> first;
  for (size_t s = 0; s < memos_.size(); ++s)
    for (size_t n = 0; n < memos_[s].size(); ++n) {
      const PlanNode& node = plan_.segments[s].nodes[n];
      NodeMemo& memo = memos_[s][n];
      if (!memo.instance || !node.is_task() || node.op->kind == OpKind::kDataDependent) continue;
      const auto [entry, is_new] = first.emplace(memo.instance.get(), &memo);
      if (is_new) continue;
      int32_t& kind = entry->second->kind;
      if (kind < 0) {
        kind = static_cast<int32_t>(latest_.size());
        latest_.emplace_back();
      }
      memo.kind = kind;
    }
}

void Resolver::prepare(const PlanNode& node, NodeMemo& memo, std::string& missing) {
  if (node.op->kind == OpKind::kControl || node.op->is_host_call || node.is_view()) return;
  memo.kernel = node.is_on_host ? context_.host->find_kernel(node)
                                : context_.kernels->find(node.node.op, node.input_types, node.output_types[0]);
  if (!memo.kernel) {
    const DType t = node.input_types.empty() ? node.output_types[0] : node.input_types[0];
    missing += (missing.empty() ? "" : ", ") + node.node.op + " '" + node.node.name + "' on " + name_of(t);
    return;
  }
  const DeviceOptions& options = node.is_on_host ? context_.host->options() : *context_.options;
  memo.instance = context_.tilings->cache().intern(memo.kernel, node, plan_, options);
  memo.task.operands = node.operands.data();
  memo.task.input_count = static_cast<uint16_t>(node.node.inputs.size());
  memo.task.output_count = static_cast<uint16_t>(node.node.outputs.size());
  memo.task.node = node.number;
}

void Resolver::set_shape(ValueId v, const Shape& shape) {
  if (stamps_[v] && states_[v].shape == shape) return;
  states_[v].shape = shape;
  stamps_[v] = ++clock_;
}

void Resolver::set_host(ValueId v, std::shared_ptr<const HostTensor> value) {
  ValueState& state = states_[v];
  if (state.host && state.host->same_value(*value)) return;
  count_host_bytes(v, *value);
  if (state.host) context_.retired.push_back(std::move(state.host));
  state.host = std::move(value);
  stamps_[v] = ++clock_;
}

// One by one they are bounded by the host evaluator; a model with many would still end in the system's hands.
void Resolver::count_host_bytes(ValueId v, const HostTensor& value) {
  const std::shared_ptr<const HostTensor>& former = states_[v].host;
  const size_t rest = context_.host_bytes - (former ? former->buffer->bytes() : 0);
  const size_t total = rest + value.buffer->bytes();
  if (context_.memory_limit_bytes && total > context_.memory_limit_bytes)
    throw OutOfMemoryError("[resolve] value '" + plan_.values[v].name + "': asked " +
                           std::to_string(value.buffer->bytes()) + " bytes on the host, other host values take " +
                           std::to_string(rest) + " bytes, limit " + std::to_string(context_.memory_limit_bytes) +
                           " bytes; raise memory_limit_bytes or run smaller inputs");
  context_.host_bytes = total;
}

void Resolver::publish(ValueId v, const Shape& shape, const std::shared_ptr<const HostTensor>& host) {
  const uint64_t before = stamps_[v];
  set_shape(v, shape);
  if (host) set_host(v, host);
  if (stamps_[v] != before && producers_[v]) producers_[v]->stamp = 0;
}

void Resolver::set_host_copy(ValueId v, const TensorView& view) {
  const ValueState& state = states_[v];
  const size_t bytes = static_cast<size_t>(view.shape.num_elements()) * size_of(view.dtype);
  if (state.host && state.host->shape == view.shape && std::memcmp(state.host->data(), view.data, bytes) == 0) return;
  HostTensor copy = HostTensor::allocate(view.dtype, view.shape);
  if (bytes) std::memcpy(copy.mutable_data(), view.data, bytes);
  set_host(v, std::make_shared<const HostTensor>(std::move(copy)));
}

void Resolver::forget() {
  for (auto& segment : memos_)
    for (NodeMemo& m : segment) m.stamp = 0;
}

bool Resolver::is_current(const PlanNode& node, const NodeMemo& memo) const {
  if (memo.stamp == 0 || !context_.use_memo) return false;
  for (ValueId v : node.node.inputs)
    if (v != kNoValue && stamps_[v] > memo.stamp) return false;
  return true;
}

// On a virtual clock it costs what a tiling that is found does: whether a twin is ready in time depends on the machine.
static void record_twin(Recorder& recorder, uint64_t start, uint32_t run, int32_t number) {
  if (!recorder.is_virtual()) {
    recorder.log().add({start, now_ticks(), run, number, 0, Stage::kInferShape, Recorder::worker()});
    return;
  }
  recorder.mark(Stage::kInferShape, number);
  recorder.mark(Stage::kTiling, number);
}

template <class Timer>
bool Resolver::resolve(size_t s, size_t n, Recorder* recorder, uint32_t run, std::shared_ptr<TilingJob>* later) {
  const PlanNode& node = plan_.segments[s].nodes[n];
  NodeMemo& memo = memos_[s][n];
  if (is_current(node, memo)) {
    ++context_.counters.skipped;
    return false;
  }
  ++context_.counters.resolved;
  if (memo.kind >= 0) {
    const uint64_t start = recorder ? now_ticks() : 0;
    if (follow_twin(node, memo)) {
      if (recorder) record_twin(*recorder, start, run, static_cast<int32_t>(node.number));
      return true;
    }
  }
  {
    const Timer timer(recorder, Stage::kInferShape, run, static_cast<int32_t>(node.number));
    gather_inputs(node);
    infer(node, memo);
  }
  const Timer timer(recorder, Stage::kTiling, run, static_cast<int32_t>(node.number));
  if (node.is_on_host)
    compute_on_host(node, memo);
  else if (node.is_task())
    use_tiling(node, memo, find_tiling(node, memo, *context_.options, later));
  if (later && *later) {
    (*later)->recorder_ = recorder;
    (*later)->run_ = run;
    memo.is_pending = true;
  }
  memo.stamp = clock_;
  if (memo.kind >= 0) latest_[static_cast<size_t>(memo.kind)] = {&node, &memo};
  return true;
}

template bool Resolver::resolve<StageTimer>(size_t, size_t, Recorder*, uint32_t, std::shared_ptr<TilingJob>*);
template bool Resolver::resolve<NoTimer>(size_t, size_t, Recorder*, uint32_t, std::shared_ptr<TilingJob>*);

bool Resolver::follow_twin(const PlanNode& node, NodeMemo& memo) {
  Resolved& latest = latest_[static_cast<size_t>(memo.kind)];
  const auto [other, twin] = latest;
  if (!twin || twin == &memo || twin->is_pending || context_.tilings->is_off()) return false;
  if (!is_current(*other, *twin) || !has_like_inputs(node, *other)) return false;
  const std::vector<ValueId>&own = node.node.outputs, &ready = other->node.outputs;
  for (size_t i = 0; i < own.size(); ++i)
    if (own[i] != kNoValue && ready[i] == kNoValue) return false;
  for (size_t i = 0; i < own.size(); ++i)
    if (own[i] != kNoValue) set_shape(own[i], states_[ready[i]].shape);
  use_tiling(node, memo, twin->tiling);
  memo.stamp = clock_;
  latest = {&node, &memo};
  ++context_.counters.twins;
  return true;
}

// Whether everything that a rule may read is the same: constants belong to the instance.
bool Resolver::has_like_inputs(const PlanNode& node, const PlanNode& other) const {
  for (size_t i = 0; i < node.node.inputs.size(); ++i) {
    const ValueId a = node.node.inputs[i], b = other.node.inputs[i];
    if (a == b || (i < 64 && ((node.constant_inputs >> i) & 1u))) continue;
    if (a == kNoValue || b == kNoValue || states_[a].shape != states_[b].shape) return false;
    const bool is_read = i < 64 && ((node.op->host_inputs >> i) & 1u);
    if (!is_read) continue;
    const HostTensor *own = states_[a].host.get(), *others = states_[b].host.get();
    if (own != others && (!own || !others || !own->same_value(*others))) return false;
  }
  return true;
}

void Resolver::gather_inputs(const PlanNode& node) {
  input_shapes_.clear();
  input_hosts_.clear();
  for (size_t i = 0; i < node.node.inputs.size(); ++i) {
    const ValueId v = node.node.inputs[i];
    input_shapes_.push_back(v == kNoValue ? nullptr : &states_[v].shape);
    // Contexts see only the values that the operator declared: what they cannot read cannot escape the key.
    const bool is_read = node.is_on_host || (i < 64 && ((node.op->host_inputs >> i) & 1u));
    input_hosts_.push_back(v == kNoValue || !is_read ? nullptr : states_[v].host.get());
  }
}

void Resolver::infer(const PlanNode& node, NodeMemo& memo) {
  if (node.op->is_host_call) return;  // the results tell their shapes
  output_shapes_.assign(node.node.outputs.size(), Shape{});
  InferContext ctx(node.node, node.input_types.data(), input_shapes_.data(), input_hosts_.data(),
                   static_cast<int>(input_shapes_.size()), output_shapes_.data(),
                   static_cast<int>(output_shapes_.size()));
  node.op->infer_shape(ctx);
  for (size_t i = 0; i < output_shapes_.size(); ++i) check_size(node, i);
  if (node.op->kind == OpKind::kDataDependent) {
    memo.bounds = output_shapes_;  // the sync point sets the shape itself
    return;
  }
  for (size_t i = 0; i < output_shapes_.size(); ++i)
    if (node.node.outputs[i] != kNoValue) set_shape(node.node.outputs[i], output_shapes_[i]);
}

// Before anything is sized by it: what no memory can hold is refused with the node's name, and sums of what is left
// cannot overflow. Host values have a limit of their own.
void Resolver::check_size(const PlanNode& node, size_t i) const {
  const size_t bytes = static_cast<size_t>(output_shapes_[i].num_elements()) * size_of(node.output_types[i]);
  const bool is_limited = context_.memory_limit_bytes && node.is_task();
  const size_t limit = is_limited ? std::min(context_.memory_limit_bytes, kMaxTensorBytes) : kMaxTensorBytes;
  if (__builtin_expect(bytes <= limit, 1)) return;
  throw OutOfMemoryError("[resolve] " + node.node.op + " '" + node.node.name + "': output " + std::to_string(i) +
                         " of shape " + output_shapes_[i].text() + " asked " + std::to_string(bytes) +
                         " bytes, limit " + std::to_string(limit) +
                         " bytes; raise memory_limit_bytes or run smaller inputs");
}

size_t Resolver::output_bytes(size_t s, size_t n, size_t i) const {
  const PlanNode& node = plan_.segments[s].nodes[n];
  const NodeMemo& memo = memos_[s][n];
  const Shape& shape = memo.bounds.empty() ? states_[node.node.outputs[i]].shape : memo.bounds[i];
  return static_cast<size_t>(shape.num_elements()) * size_of(node.output_types[i]);
}

void Resolver::make_key(const PlanNode& node, const NodeMemo& memo) {
  key_.clear();
  key_.add(memo.instance->number);
  for (size_t i = 0; i < input_shapes_.size(); ++i) {
    if (i < 64 && ((node.constant_inputs >> i) & 1u)) continue;  // part of the instance
    const Shape* shape = input_shapes_[i];
    key_.add(shape ? static_cast<uint64_t>(shape->rank()) : ~uint64_t{0});
    if (shape)
      for (int64_t d : *shape) key_.add(static_cast<uint64_t>(d));
    if (input_hosts_[i] && i < 64 && ((node.op->host_inputs >> i) & 1u))
      key_.add_bytes(input_hosts_[i]->data(), input_hosts_[i]->bytes());
  }
}

std::shared_ptr<const Tiling> Resolver::find_tiling(const PlanNode& node, const NodeMemo& memo,
                                                    const DeviceOptions& options, std::shared_ptr<TilingJob>* later) {
  const auto make = [&] {
    TilingContext ctx(node.node, node.input_types.data(), input_shapes_.data(), input_hosts_.data(),
                      static_cast<int>(input_shapes_.size()), node.output_types.data(), output_shapes_.data(),
                      static_cast<int>(output_shapes_.size()), node.is_on_host ? 0 : node.constant_inputs, options,
                      memo.kernel->data);
    return create_tiling_with(*memo.kernel, ctx);
  };
  TilingCache& cache = context_.tilings->cache();
  make_key(node, memo);
  if (context_.tilings->is_off()) {
    ++context_.counters.tiling_bypasses;
    return cache.bypass(*memo.instance, make);
  }
  if (std::shared_ptr<const Tiling> found = cache.find(key_, *memo.instance)) {
    ++context_.counters.tiling_hits;
    return found;
  }
  ++context_.counters.tiling_misses;
  if (!later) return cache.fill(key_, memo.instance, make);
  *later = make_job(node, memo);
  return nullptr;
}

std::shared_ptr<TilingJob> Resolver::make_job(const PlanNode& node, const NodeMemo& memo) const {
  auto job = std::make_shared<TilingJob>();
  job->node_ = &node;
  job->kernel_ = memo.kernel;
  job->options_ = context_.options;
  job->cache_ = &context_.tilings->cache();
  job->instance_ = memo.instance;
  job->key_ = key_;
  for (size_t i = 0; i < input_shapes_.size(); ++i) {
    job->has_input_.push_back(input_shapes_[i] != nullptr);
    job->inputs_.push_back(input_shapes_[i] ? *input_shapes_[i] : Shape{});
    job->hosts_.push_back(input_hosts_[i] ? states_[node.node.inputs[i]].host : nullptr);
  }
  job->outputs_ = output_shapes_;
  return job;
}

void Resolver::commit(size_t s, size_t n, TilingJob& job) {
  try {
    use_tiling(plan_.segments[s].nodes[n], memos_[s][n], job.wait());
    memos_[s][n].is_pending = false;
  } catch (...) {
    abandon(s, n);
    throw;
  }
}

void Resolver::compute_on_host(const PlanNode& node, NodeMemo& memo) {
  if (node.is_view()) {
    const HostTensor& from = *states_[node.node.inputs[0]].host;
    set_host(node.node.outputs[0], std::make_shared<const HostTensor>(HostEvaluator::view(from, output_shapes_[0])));
    return;
  }
  if (node.op->is_host_call) return call_out(node);
  memo.tiling = find_tiling(node, memo, context_.host->options(), nullptr);
  if (node.op->is_shape_only) input_hosts_.assign(input_hosts_.size(), nullptr);
  std::vector<HostTensor> results = context_.host->launch(node, *memo.tiling, input_hosts_, output_shapes_);
  for (size_t i = 0; i < results.size(); ++i)
    if (node.node.outputs[i] != kNoValue)
      set_host(node.node.outputs[i], std::make_shared<const HostTensor>(std::move(results[i])));
}

void Resolver::call_out(const PlanNode& node) {
  ++context_.counters.host_calls;
  std::vector<HostTensor> results = call_host(node.node, input_hosts_, node.output_types);
  for (size_t i = 0; i < results.size(); ++i) {
    const ValueId v = node.node.outputs[i];
    if (v == kNoValue) continue;
    set_shape(v, results[i].shape);
    set_host(v, std::make_shared<const HostTensor>(std::move(results[i])));
  }
}

// Of the tilings in use: those of schedules that are kept count there.
void Resolver::count_table_bytes(const PlanNode& node, const NodeMemo& memo, const Tiling& tiling) {
  const size_t rest = context_.table_bytes - (memo.tiling ? table_bytes(*memo.tiling) : 0);
  const size_t asked = table_bytes(tiling);
  if (asked && context_.memory_limit_bytes && rest + asked > context_.memory_limit_bytes)
    throw OutOfMemoryError("[resolve] " + node.node.op + " '" + node.node.name + "': its tables take " +
                           std::to_string(asked) + " bytes, those of other nodes " + std::to_string(rest) +
                           " bytes, limit " + std::to_string(context_.memory_limit_bytes) +
                           " bytes; raise memory_limit_bytes or run smaller inputs");
  context_.table_bytes = rest + asked;
}

void Resolver::use_tiling(const PlanNode& node, NodeMemo& memo, std::shared_ptr<const Tiling> tiling) {
  if (!tiling || tiling == memo.tiling) return;
  std::shared_ptr<const Buffer> packed = context_.packs->get(*tiling, node, plan_);
  count_table_bytes(node, memo, *tiling);
  if (memo.tiling) context_.retired.push_back(std::move(memo.tiling));
  if (memo.packed && memo.packed != packed) context_.retired.push_back(std::move(memo.packed));
  memo.tiling = std::move(tiling);
  memo.packed = std::move(packed);
  memo.task.launch = memo.tiling->launch;
  memo.task.tiling = memo.tiling.get();
}

}  // namespace asc
