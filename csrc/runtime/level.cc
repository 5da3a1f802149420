#include "runtime/level.h"

#include "schedule/schedule_validator.h"

namespace asc {
namespace {

constexpr uint64_t kSampleMask = 15;  // one run in 16 of a kept schedule is timed

uint64_t ns_since(uint64_t start_ticks) {
  return static_cast<uint64_t>(static_cast<double>(now_ticks() - start_ticks) * ns_per_tick());
}

size_t extent_count(const Segment& s) {
  size_t count = 0;
  for (uint32_t n : s.extent_nodes) count += s.nodes[n].node.outputs.size();
  return count * kMaxRank;
}

// Where a signature may not come back, an arena that stays in the nearest cache is not worth a search.
constexpr int64_t kSmallArenaBytes = 32 << 10;

}  // namespace

Level::Level(std::shared_ptr<const Plan> plan, ResolveContext& context, Device& device, Streams& streams, Pool& pool,
             Pipeline& pipeline, const LevelOptions& options)
    : plan_(std::move(plan)),
      device_(device),
      streams_(streams),
      pipeline_(pipeline),
      options_(options),
      resolver_(*plan_, context),
      frame_(plan_->values.size()),
      output_of_root_(plan_->values.size(), -1) {
  for (size_t i = 0; i < plan_->outputs.size(); ++i)
    output_of_root_[plan_->values[plan_->outputs[i]].root] = static_cast<int32_t>(i);
  for (size_t v = 0; v < frame_.size(); ++v)
    if (plan_->values[v].constant) frame_[v].data = const_cast<void*>(plan_->values[v].constant->data());
  for (size_t s = 0; s < plan_->segments.size(); ++s) {
    const Segment& segment = plan_->segments[s];
    SegmentState state;
    if (segment.kind == SegmentKind::kTasks) {
      state.host = std::make_unique<HostSegment>(resolver_, s, pool, options_.streams);
      state.schedules = std::make_unique<KeyedCache<BoundSchedule>>(options.schedule_cache_bytes);
      state.choice = std::make_unique<SinkChoice>();
      state.extents.resize(extent_count(segment));
    }
    for (const auto& body : segment.bodies)
      state.bodies.push_back(std::make_unique<Level>(body, context, device, streams, pool, pipeline, options));
    segments_.push_back(std::move(state));
  }
}

Level::~Level() = default;

void Level::run(RunContext& run, const std::vector<Argument>& arguments, Results& results) {
  results_ = &results;
  pool_ = run.pool;
  bind(arguments);
  const FrameGuard guard(*this);
  for (size_t s = 0; s < segments_.size(); ++s) {
    const SegmentKind kind = plan_->segments[s].kind;
    if (kind == SegmentKind::kTasks)
      run_tasks(s, run);
    else if (kind == SegmentKind::kIf)
      run_if(s, run);
    else
      run_loop(s, run);
  }
  for (size_t i = 0; i < plan_->outputs.size(); ++i) results.set_shape(i, output_shape(i));
}

void Level::run_again(RunContext& run, const std::vector<Argument>& arguments, Results& results) {
  results_ = &results;
  pool_ = run.pool;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ValueId v = plan_->inputs[i];
    if (!plan_->values[v].constant) frame_[v].data = arguments[i].view.data;
  }
  const FrameGuard guard(*this);
  run_known(0, whole_schedule_, run);
}

bool Level::infer_shapes(RunContext& run, const std::vector<Argument>& arguments) {
  const Segment& segment = plan_->segments.front();
  if (segments_.size() != 1 || segment.kind != SegmentKind::kTasks || segment.ends_in_sync()) return false;
  bind(arguments);
  segments_[0].host->doubt_places();
  try {
    for (size_t n = 0; n < segment.nodes.size(); ++n) resolver_.resolve(0, n, run.recorder, run.run);
  } catch (const Error&) {
    return false;
  }
  return true;
}

std::optional<bool> Level::resolve_ahead(RunContext& run, const std::vector<Argument>& arguments) {
  const Segment& segment = plan_->segments.front();
  if (segments_.size() != 1 || segment.kind != SegmentKind::kTasks || segment.ends_in_sync()) return std::nullopt;
  if (segments_[0].schedules->limit_bytes() == 0) return std::nullopt;
  for (bool is_read : plan_->host_inputs)
    if (is_read) return std::nullopt;
  bind(arguments);
  make_signature(resolver_, 0, key_);
  if (segments_[0].schedules->find(key_)) return false;
  const std::shared_ptr<BoundSchedule> kept = keep_schedule(0, run);
  kept->take_table();  // made now, and free for the run that comes
  run.arena->reserve(kept->schedule().arena_bytes);
  return true;
}

void Level::bind(const std::vector<Argument>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ValueId v = plan_->inputs[i];
    if (plan_->values[v].constant) continue;
    const Argument& a = arguments[i];
    frame_[v].data = a.view.data;
    resolver_.set_shape(v, a.view.shape);
    if (!plan_->host_inputs[i]) continue;
    if (a.host)
      resolver_.set_host(v, a.host);
    else
      resolver_.set_host_copy(v, a.view);
  }
}

void* Level::place(ValueId root, size_t bytes) {
  const int32_t output = output_of_root_[root];
  if (output >= 0) return frame_[root].data = results_->place(static_cast<size_t>(output), bytes);
  owned_.push_back(pool_->allocate_result(bytes));
  return frame_[root].data = owned_.back().data;
}

Level::FrameGuard::~FrameGuard() {
  for (Block b : level_.owned_) level_.pool_->release(b);
  level_.owned_.clear();
}

void Level::run_tasks(size_t s, RunContext& run) {
  const Segment& segment = plan_->segments[s];
  const std::shared_ptr<BoundSchedule> known = find_schedule(s, run);
  whole_schedule_ = segments_.size() == 1 && !segment.ends_in_sync() ? known : nullptr;
  if (!known) {
    run_node_by_node(s, run);
  } else {
    publish(known->schedule());
    run_known(s, known, run);
  }
  std::vector<std::shared_ptr<const void>>& retired = resolver_.context().retired;
  run.holdings->kept.insert(run.holdings->kept.end(), retired.begin(), retired.end());
  retired.clear();
  if (!segment.ends_in_sync()) return;
  sync(run, static_cast<int32_t>(segment.nodes.back().number));
  if (known) {
    read_extents(s, known->schedule().bounds);
  } else {
    std::vector<std::pair<size_t, Shape>> bounds;
    for (uint32_t n : segment.extent_nodes)
      for (size_t i = 0; i < segment.nodes[n].node.outputs.size(); ++i)
        bounds.emplace_back(n, resolver_.bound(s, n, i));
    read_extents(s, bounds);
  }
  read_back(segment.read_backs);
}

void Level::run_known(size_t s, const std::shared_ptr<BoundSchedule>& known, RunContext& run) {
  const bool is_sampled = (run.counters->known_segments++ & kSampleMask) == 0;
  const uint64_t start = is_sampled ? now_ticks() : 0;
  int64_t* extents = segments_[s].extents.data();
  if (options_.mode == Mode::kHost)
    replay(known, *this, run, extents);
  else
    LoadedSchedule::submit(std::static_pointer_cast<LoadedSchedule>(known), *this, run, extents);
  if (!is_sampled) return;
  ++run.counters->sampled_segments;
  run.counters->sampled_segment_ns += ns_since(start);
}

// The schedule of this signature, made now where the mode says so; null: run node by node. Leaves the signature in
// key_.
std::shared_ptr<BoundSchedule> Level::find_schedule(size_t s, RunContext& run) {
  {
    StageTimer timer(run.recorder, Stage::kFramework, run.run, -1);
    make_signature(resolver_, s, key_);
    if (std::shared_ptr<BoundSchedule> found = segments_[s].schedules->find(key_)) {
      if (found->is_first_sighting) segments_[s].choice->note_return();
      found->is_first_sighting = false;
      return found;
    }
  }
  const bool sinks_at_once = options_.mode == Mode::kSink || (options_.mode == Mode::kAuto && plan_->is_static());
  if (sinks_at_once || run.sinks_now) return keep_schedule(s, run);
  segments_[s].has_room = segments_[s].schedules->would_keep(run.sighting.tag);
  if (!is_due_before(segments_[s])) return nullptr;
  std::shared_ptr<BoundSchedule> kept = keep_schedule(s, run);
  kept->is_first_sighting = segments_[s].choice->was_first();
  return kept;
}

// The device already runs the first tasks while the last are resolved. What was resolved is kept, for replaying (host)
// or sinking (auto), as SinkChoice says.
void Level::run_node_by_node(size_t s, RunContext& run) {
  const Key key = key_;  // control flow inside may reuse the scratch key
  const uint64_t start = now_ticks();
  HostSegment& host = *segments_[s].host;
  const PipelineShape shape = pipeline_shape(host, run);
  const uint64_t blocked = streams_.blocked_ticks();
  streams_.ensure(host.streams().streams());
  if (shape == PipelineShape::kSerial)
    run_serial(host, *this, run, segments_[s].extents.data());
  else
    pipeline_.run(host, shape, *this, run, segments_[s].extents.data());
  const uint64_t host_ns = ns_since(start);
  const double blocked_ns = static_cast<double>(streams_.blocked_ticks() - blocked) * ns_per_tick();
  if (host.streams().may_serve(run)) host.choose_streams((static_cast<double>(host_ns) - blocked_ns) / host.size());
  key_ = key;
  if (is_due_after(segments_[s], host_ns, *run.counters))
    keep_schedule(s, run);
  else if (learns_price(segments_[s]))
    keep_schedule(s, run)->is_first_sighting = true;
}

PipelineShape Level::pipeline_shape(const HostSegment& segment, const RunContext& run) const {
  if (run.is_inline || options_.pipeline_workers == 0) return PipelineShape::kSerial;
  if (options_.pipeline_workers > 0) return asked_shape(options_.pipeline_workers, options_.cpus);
  return choose_pipeline(segment.costs(run.sighting.novelty), options_.cpus).shape;
}

bool Level::is_due_before(SegmentState& state) {
  return options_.mode == Mode::kAuto && state.schedules->limit_bytes() && state.has_room &&
         state.choice->is_due_before(key_);
}

bool Level::learns_price(SegmentState& state) {
  return options_.mode == Mode::kAuto && state.schedules->limit_bytes() && state.choice->learns_price(key_);
}

bool Level::is_due_after(SegmentState& state, uint64_t host_ns, RunCounters& counters) {
  if (state.schedules->limit_bytes() == 0) return false;
  if (!state.has_room) {  // it is foreseen, so not new
    ++counters.repeat_segments;
    counters.repeat_segment_ns += host_ns;
    return false;
  }
  const bool is_due = state.choice->is_due_after(key_, host_ns);
  if (counters.runs + counters.warmups > 1) {  // the first run of all also wakes the kernel libraries
    const bool is_first = state.choice->was_first();
    ++(is_first ? counters.first_segments : counters.repeat_segments);
    (is_first ? counters.first_segment_ns : counters.repeat_segment_ns) += host_ns;
  }
  return is_due;
}

// What is resolved here counts as unchanged in the next run node by node, whose slots still fit the run before.
std::shared_ptr<const Schedule> Level::make_schedule(size_t s, RunContext& run, uint64_t& resolve_ns) {
  const uint64_t& resolved = resolver_.context().counters.resolved;
  const uint64_t before = resolved;
  const uint64_t start = now_ticks();
  std::shared_ptr<const Schedule> schedule;
  try {
    for (size_t n = 0; n < plan_->segments[s].nodes.size(); ++n) resolver_.resolve(s, n, run.recorder, run.run);
    resolve_ns = ns_since(start);
    const bool may_be_seldom = options_.mode == Mode::kAuto && !plan_->dynamic_reasons.empty();
    schedule =
        build_schedule(resolver_, s, options_.streams, segments_[s].memory, may_be_seldom ? kSmallArenaBytes : 0);
  } catch (...) {
    segments_[s].host->doubt_places();
    throw;
  }
  if (resolved != before) segments_[s].host->doubt_places();
  return schedule;
}

std::shared_ptr<BoundSchedule> Level::keep_schedule(size_t s, RunContext& run) {
  SegmentState& state = segments_[s];
  const uint64_t start = now_ticks();
  StageTimer timer(run.recorder, Stage::kLoad, run.run, -1);
  uint64_t resolve_ns = 0;
  std::shared_ptr<const Schedule> schedule = make_schedule(s, run, resolve_ns);
  streams_.ensure(schedule->streams.order.streams);
  std::shared_ptr<BoundSchedule> kept;
  if (options_.mode == Mode::kHost)
    kept = std::make_shared<BoundSchedule>(std::move(schedule), *plan_, s);
  else
    kept = std::make_shared<LoadedSchedule>(std::move(schedule), *plan_, s, device_);
  state.last = kept;
  state.schedules->insert(key_, kept, kept->bytes(), run.sighting.tag);
  const uint64_t price_ns = ns_since(start);
  state.choice->note_price(resolve_ns, price_ns - resolve_ns);
  ++run.counters->loads;
  run.counters->load_ns += price_ns;
  run.counters->arena_planned_bytes += kept->schedule().arena_bytes;
  run.counters->arena_bound_bytes += kept->schedule().arena_bound;
  return kept;
}

void Level::publish(const Schedule& schedule) {
  for (const Schedule::Published& p : schedule.published) resolver_.publish(p.value, p.shape, p.host);
}

void Level::sync(RunContext& run, int32_t node) {
  StageTimer timer(run.recorder, Stage::kSync, run.run, node);
  ++run.counters->syncs;
  if (!run.is_inline) {
    Event reached;
    run.stream->record(&reached);
    reached.wait(-1);
    if (reached.status() != Status::kOk) throw DeviceError(reached.error());
  }
  if (run.event->has_failed()) throw RunAborted{};
}

void Level::read_extents(size_t s, const std::vector<std::pair<size_t, Shape>>& bounds) {
  const Segment& segment = plan_->segments[s];
  const int64_t* dims = segments_[s].extents.data();
  size_t output = 0, previous = static_cast<size_t>(-1);
  for (const auto& [node, bound] : bounds) {
    output = node == previous ? output + 1 : 0;
    previous = node;
    Shape shape = bound;
    for (int d = 0; d < bound.rank(); ++d) {
      shape[d] = dims[d];
      if (shape[d] < 0 || shape[d] > bound[d])
        throw DeviceError("[sync] " + segment.nodes[node].node.op + " '" + segment.nodes[node].node.name +
                          "' reported extent " + std::to_string(shape[d]) + " beyond " + std::to_string(bound[d]));
    }
    dims += kMaxRank;
    const ValueId v = segment.nodes[node].node.outputs[output];
    if (v != kNoValue) resolver_.set_shape(v, shape);
  }
}

void Level::read_back(const std::vector<ValueId>& values) {
  for (ValueId v : values) {
    const PlanValue& value = plan_->values[v];
    resolver_.set_host_copy(v, {value.type.dtype, resolver_.shape(v), frame_[value.root].data});
  }
}

Argument Level::argument(ValueId v, bool needs_host) {
  Argument a;
  if (v == kNoValue) return a;
  const PlanValue& value = plan_->values[v];
  a.view = {value.type.dtype, resolver_.shape(v), nullptr};
  const std::shared_ptr<const HostTensor>& host = resolver_.host(v);
  const bool lives_on_host = value.is_host && !value.is_read_back && !frame_[value.root].data;
  if (needs_host || lives_on_host || value.constant) a.host = host;
  a.view.data = frame_[value.root].data ? frame_[value.root].data : const_cast<void*>(host ? host->data() : nullptr);
  return a;
}

void Level::set_result(ValueId v, const Shape& shape, Block block, RunContext& run) {
  if (v == kNoValue) {
    run.pool->release(block);
    return;
  }
  owned_.push_back(block);
  frame_[v].data = block.data;
  resolver_.set_shape(v, shape);
}

std::string Level::find_race() const {
  std::string found;
  for (const SegmentState& s : segments_) {
    if (const auto kept = s.last.lock(); kept && found.empty()) found = asc::find_race(kept->schedule());
    if (s.host && found.empty()) found = s.host->find_race();
    for (const auto& body : s.bodies)
      if (found.empty()) found = body->find_race();
  }
  return found;
}

}  // namespace asc
