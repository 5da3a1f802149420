#include "runtime/executable.h"

#include <algorithm>

#include "backends/cpu/device.h"
#include "runtime/input_check.h"
#include "sync/fork.h"
#include "sync/spin.h"

namespace asc {
namespace {

void collect_nodes(const Plan& plan, std::vector<NodeInfo>& nodes) {
  for (const Segment& s : plan.segments) {
    for (const PlanNode& n : s.nodes) nodes[n.number] = {n.node.name, n.node.op};
    for (const auto& body : s.bodies) collect_nodes(*body, nodes);
  }
}

CompileOptions compile_options(HostEvaluator& host, bool fuse, const DeviceInfo& device) {
  CompileOptions options;
  options.fuse = fuse && device.has_fused_kernels;
  options.hoist = fuse;
  options.channels_last = device.wants_channels_last;
  options.fold = [&host](const PlanNode& node, const std::vector<const HostTensor*>& values,
                         const std::vector<const Shape*>& shapes) { return host.compute(node, values, shapes); };
  return options;
}

// What the estimate knows of the device, and what was asked for.
StreamSettings stream_settings(const DeviceInfo& info, int asked) {
  StreamSettings settings;
  StreamLimits& limits = settings.limits;
  const auto wanted = static_cast<uint32_t>(asked);
  limits.most = asked ? std::min(wanted, info.max_streams) : info.max_streams;
  limits.is_forced = asked > 1;
  if (asked == 1)
    limits.why_one = "asked for";
  else if (limits.most < 2)
    limits.why_one = info.threads == 1 ? "one thread" : "the device has no more";
  settings.task_ns = static_cast<double>(info.task_ns);
  limits.costs.spin_ns = static_cast<double>(default_spin_ns());
  limits.costs.wake_ns = static_cast<double>(info.wake_ns);
  return settings;
}

}  // namespace

std::shared_ptr<Executable> Executable::create(Graph graph, const ExecutableOptions& options) {
  HostEvaluator host(cpu_kernels());
  const DeviceInfo device = create_device(options.device, options.settings)->info();
  return std::shared_ptr<Executable>(
      new Executable(compile_plan(std::move(graph), compile_options(host, options.fuse, device)), options));
}

Executable::Executable(std::shared_ptr<const Plan> plan, const ExecutableOptions& options)
    : plan_(std::move(plan)),
      options_(options),
      fork_generation_(fork_generation()),
      nodes_(plan_->node_count),
      device_(create_device(options.device, options.settings)),
      streams_(std::make_unique<Streams>(*device_)),
      pool_(std::make_unique<Pool>(*device_, *streams_)),
      arena_(std::make_unique<Arena>(*device_, *pool_)),
      host_(cpu_kernels()),
      tilings_(shared_tilings(options.device), options.tiling_cache_bytes) {
  collect_nodes(*plan_, nodes_);
  context_.device = device_->info().name;
  context_.kernels = &device_->kernels();
  context_.options = &device_->options();
  context_.memory_limit_bytes = device_->info().memory_limit_bytes;
  context_.host = &host_;
  context_.tilings = &tilings_;
  context_.packs = &packs_;
  context_.use_memo = options.use_memo;
  // A virtual clock gives every worker a CPU: traces must not depend on the machine.
  const int cpus = device_->info().is_virtual ? static_cast<int>(Recorder::kMaxWorkers) : options.settings.threads;
  const int helpers = options.pipeline_workers > 0 ? options.pipeline_workers - 1 : std::clamp(cpus - 2, 0, 4);
  pipeline_ = std::make_unique<Pipeline>(*pool_, helpers);
  root_ =
      std::make_unique<Level>(plan_, context_, *device_, *streams_, *pool_, *pipeline_,
                              LevelOptions{options.mode, options.schedule_cache_bytes, cpus, options.pipeline_workers,
                                           stream_settings(device_->info(), options.streams)});
}

Executable::~Executable() = default;

void Executable::check_process() const {
  if (fork_generation() != fork_generation_)
    throw DeviceError("[run] this executable was created before fork(); compile the model again in the child process");
}

std::unique_lock<std::mutex> Executable::lock() {
  std::unique_lock<std::mutex> guard = lock_unless_executing();
  if (guard.owns_lock()) return guard;
  throw PlanError("[run] an operator of model '" + plan_->name +
                  "' uses the executable that runs it; compile the model a second time for that");
}

std::unique_lock<std::mutex> Executable::lock_unless_executing() {
  if (executing_.is_this_thread()) return {};
  return std::unique_lock<std::mutex>(mutex_);
}

std::shared_ptr<Run> Executable::start(const std::vector<TensorView>& inputs, const std::vector<TensorView>& bound,
                                       bool is_async) {
  check_process();
  check_inputs(*plan_, inputs);
  auto run = std::make_shared<Run>(shared_from_this(), bound);
  const uint64_t arrived = foresight_ ? now_ticks() : 0;
  const std::unique_lock<std::mutex> guard = lock();
  const Sighting sighting = foresight_ ? foresight_->begin_run(inputs, arrived) : Sighting{};
  launch(*run, inputs, sighting, is_async, false);
  if (foresight_) foresight_->end_run(root_->whole_schedule() != nullptr);
  return run;
}

void Executable::note_repeat(const Run& run, const std::vector<TensorView>& inputs) {
  const std::shared_ptr<BoundSchedule>& schedule = root_->whole_schedule();
  if (!schedule) return;
  for (bool is_read : plan_->host_inputs)
    if (is_read) return;  // its contents belong to the signature
  std::vector<TensorView> outputs;
  for (const Run::Result& r : run.results()) outputs.push_back(r.view);
  repeats_.note(schedule, counters_.runs, options_.mode != Mode::kHost, !device_->info().computes, *plan_, inputs,
                outputs);
}

std::vector<std::pair<size_t, Repeat::Signature>> Executable::changed_signatures(const Repeats::Ids& known) {
  const std::unique_lock<std::mutex> guard = lock();
  return repeats_.changes(known);
}

bool Executable::has_own_operators() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const NodeInfo& node) { return node.op == "Extension" || node.op == "HostCall"; });
}

bool Executable::repeat(uint64_t id, void* const* inputs, void* const* outputs, bool may_block) {
  if (fork_generation() != fork_generation_) return false;  // start complains
  const std::unique_lock<std::mutex> guard =
      may_block ? lock() : std::unique_lock<std::mutex>(mutex_, std::try_to_lock);
  if (!guard.owns_lock()) return false;
  Stream& stream = streams_->first();
  Repeat& again = repeats_.at(id);
  if (again.signature().id != id || recorder_ || !stream.begin_inline()) return false;
  if (foresight_) foresight_->begin_run(again.signature().inputs, now_ticks());
  repeat_event_.reset();
  try {
    const std::shared_ptr<Arena::Slab>& slab = arena_->reserve(again.arena_bytes());
    again.run(inputs, outputs, slab ? slab->base() : nullptr, *streams_, repeat_event_, counters_, sequence_);
    stream.record(&repeat_event_);
  } catch (...) {
    stream.end_inline();
    throw;
  }
  stream.end_inline();
  if (repeat_event_.status() != Status::kOk) std::rethrow_exception(kernel_error(repeat_event_, *this));
  if (foresight_) foresight_->end_run(true);
  return true;
}

void Executable::warm_up(const std::vector<TensorView>& inputs) {
  check_process();
  check_inputs(*plan_, inputs);
  auto run = std::make_shared<Run>(shared_from_this(), std::vector<TensorView>{});
  {
    const std::unique_lock<std::mutex> guard = lock();
    launch(*run, inputs, {}, false, true);
  }
  run->wait(-1);
}

std::optional<bool> Executable::resolve_ahead(const std::vector<Shape>& shapes) {
  check_process();
  uint64_t spent_ns = 0;
  return resolve_shapes(shapes, 0, spent_ns);
}

void Executable::foresee(const ForesightPolicy& policy) {
  const auto resolve = [this](const std::vector<Shape>& shapes, uint64_t symbol, uint64_t& spent_ns) {
    return resolve_shapes(shapes, symbol, spent_ns);
  };
  foresight_ = std::make_unique<Foresight>(*plan_, policy, resolve);
  root_->set_outlook(foresight_.get());
}

bool Executable::wait_foreseen(double timeout_s) {
  return !foresight_ || foresight_->wait_idle(static_cast<int64_t>(timeout_s * 1e9));
}

std::vector<Outlook::Decision> Executable::take_decisions() {
  return foresight_ ? foresight_->take_decisions() : std::vector<Outlook::Decision>{};
}

std::optional<bool> Executable::resolve_shapes(const std::vector<Shape>& shapes, uint64_t symbol, uint64_t& spent_ns) {
  if (shapes.size() != plan_->inputs.size())
    throw GraphError("[resolve_ahead] " + std::to_string(shapes.size()) + " shapes for " +
                     std::to_string(plan_->inputs.size()) + " inputs; give one for each");
  std::vector<TensorView> inputs;
  std::vector<Argument> arguments;
  for (size_t i = 0; i < shapes.size(); ++i) {
    shapes[i].num_elements();  // throws for what is no shape
    inputs.push_back({plan_->values[plan_->inputs[i]].type.dtype, shapes[i], nullptr});
    arguments.push_back({inputs.back(), nullptr});
  }
  check_inputs(*plan_, inputs);
  const std::unique_lock<std::mutex> guard = lock();
  RunContext context;
  context.counters = &counters_;
  context.arena = arena_.get();
  context.sighting.tag = symbol;
  // What this retires may still be read by runs in flight: the next run takes it over, and completes after them.
  const uint64_t start = now_ticks();
  const std::optional<bool> made = root_->resolve_ahead(context, arguments);
  spent_ns += static_cast<uint64_t>(static_cast<double>(now_ticks() - start) * ns_per_tick());
  return made;
}

std::vector<HotShape> Executable::hot_shapes() {
  check_process();
  const std::unique_lock<std::mutex> guard = lock();
  return hot_shapes_.list();
}

void Executable::launch(Run& run, const std::vector<TensorView>& inputs, const Sighting& sighting, bool is_async,
                        bool is_warmup) {
  ++(is_warmup ? counters_.warmups : counters_.runs);
  RunContext context;
  context.sinks_now = is_warmup;
  context.sighting = sighting;
  context.stream = &streams_->first();
  context.streams = streams_.get();
  context.event = &run.event_;
  context.recorder = recorder_.get();
  context.run = recorder_ ? recorder_->begin_run() : 0;
  context.sequence = sequence_;
  context.pool = pool_.get();
  context.arena = arena_.get();
  context.counters = &counters_;
  context.holdings = &run.holdings_;
  run.event_.recorder = context.recorder;
  run.event_.run = context.run;
  context.is_inline = !is_async && streams_->first().begin_inline();
  run.is_inline_ = context.is_inline;
  if (recorder_) recorder_->was_inline |= context.is_inline;
  execute(run, context, inputs);
  sequence_ = context.sequence;
  try {
    streams_->first().record(&run.event_);
    run.is_launched_ = true;
  } catch (...) {
    if (context.is_inline) streams_->first().end_inline();
    throw;
  }
  if (context.is_inline) streams_->first().end_inline();
  if (run.error_) return;
  hot_shapes_.note(*plan_, inputs);
  if (context.is_inline) note_repeat(run, inputs);
}

// A failed stage is kept in the run; whatever was launched before it completes first.
void Executable::execute(Run& run, RunContext& context, const std::vector<TensorView>& inputs) {
  // Host time inside a run that no stage claims; readers count the innermost span.
  StageTimer timer(context.recorder, Stage::kFramework, context.run, -1);
  executing_.enter();
  try {
    std::vector<Argument> arguments;
    arguments.reserve(inputs.size());
    for (const TensorView& v : inputs) arguments.push_back({v, nullptr});
    root_->run(context, arguments, run);
  } catch (const RunAborted&) {
    // The event carries the error.
  } catch (...) {
    run.error_ = std::current_exception();
  }
  executing_.leave();
  run.holdings_.kept.insert(run.holdings_.kept.end(), context_.retired.begin(), context_.retired.end());
  context_.retired.clear();
}

void Executable::resize_caches(size_t tiling_bytes, size_t schedule_bytes) {
  check_process();
  const std::unique_lock<std::mutex> guard = lock();
  tilings_.resize(tiling_bytes);
  root_->resize_schedule_cache(schedule_bytes);
  repeats_.forget();
  if (foresight_) foresight_->try_again();
}

void Executable::resize_workers(int workers) {
  check_process();
  const std::unique_lock<std::mutex> guard = lock();
  pipeline_->resize(workers - 1);
}

void Executable::drop_cache_entries(size_t n) {
  check_process();
  const std::unique_lock<std::mutex> guard = lock();
  tilings_.cache().drop(n);
  root_->drop_schedule(n);
  root_->forget();
  repeats_.forget();
}

std::string Executable::find_race() {
  check_process();
  const std::unique_lock<std::mutex> guard = lock();
  return root_->find_race();
}

void Executable::start_recording(size_t capacity_bytes) {
  check_process();
  const std::unique_lock<std::mutex> guard = lock();
  if (recorder_) throw PlanError("[profile] a profile of this executable is on already; leave its with block first");
  streams_->first().synchronize();  // earlier runs keep their null recorder; no span of theirs may mix in
  const size_t nodes = std::max<size_t>(1, nodes_.size());
  recorder_ = std::make_unique<Recorder>(capacity_bytes, device_->info().is_virtual ? nodes : 0);
}

std::unique_ptr<Recorder> Executable::stop_recording() {
  check_process();
  const std::unique_lock<std::mutex> guard = lock();
  streams_->first().synchronize();
  return std::move(recorder_);
}

}  // namespace asc
