#include "schedule/bound_schedule.h"

#include "base/error.h"

namespace asc {

BoundSchedule::BoundSchedule(std::shared_ptr<const Schedule> schedule, const Plan& plan, size_t segment)
    : schedule_(std::move(schedule)),
      tables_(std::make_shared<TableStore>(schedule_->table)),
      race_(!schedule_->streams.is_forced) {
  if (const uint32_t count = schedule_->streams.order.points) points_ = std::make_unique<Point[]>(count);
  const Segment& s = plan.segments[segment];
  for (uint32_t i = 0; i < s.slots.size(); ++i)
    if (s.slots[i].kind == SlotKind::kInput) inputs_.push_back({i, s.slots[i].value});
  size_t at = 0;
  for (uint32_t n : s.extent_nodes) {
    extents_.emplace_back(s.nodes[n].operands.back(), at);
    at += kMaxRank * s.nodes[n].node.outputs.size();
  }
  bytes_ = schedule_->bytes + schedule_->streams.order.points * sizeof(Point) + s.slots.size() * sizeof(void*) +
           sizeof(*this);
}

Table& BoundSchedule::lease(const std::shared_ptr<BoundSchedule>& self, Frame& frame, RunContext& run,
                            int64_t* extents) {
  const Schedule& schedule = *self->schedule_;
  Table& table = run.lease(self->tables_);
  run.holdings->kept.push_back(self);
  for (const Schedule::OutputSlot& out : schedule.outputs) table.slots[out.slot] = frame.place(out.root, out.bytes);
  // Behind the results: where there is too little room for them, the arena gives its slab up.
  const std::shared_ptr<Arena::Slab>& slab = run.arena->reserve(schedule.arena_bytes);
  const std::byte* base = slab ? slab->base() : nullptr;
  if (!run.is_inline) run.holdings->kept.push_back(slab);
  if (table.arena_base != base) {
    for (const Schedule::ArenaSlot& a : schedule.arena_slots) table.slots[a.slot] = slab->base() + a.offset;
    table.arena_base = base;
  }
  for (const InputSlot& in : self->inputs_) table.slots[in.slot] = frame.input(in.root);
  for (const auto& [slot, offset] : self->extents_) table.slots[slot] = extents + offset;
  return table;
}

void BoundSchedule::launch_tasks(const Streams& streams, void* const* slots, Event& event, uint32_t& sequence,
                                 bool is_inline) {
  const auto launch = [&](Stream& stream, const Task& task) {
    const StageTimer timer(event.recorder, Stage::kLaunch, event.run, static_cast<int32_t>(task.node), ++sequence);
    stream.launch(task, slots, &event, sequence);
  };
  const auto launch_in_order = [&] {
    Stream& first = streams.first();
    if (event.recorder)
      for (const Task& task : schedule_->tasks) launch(first, task);
    else
      for (const Task& task : schedule_->tasks) first.launch(task, slots, &event, ++sequence);
  };
  const StreamOrder& order = schedule_->streams.order;
  if (order.is_single()) return launch_in_order();
  const auto launch_on_streams = [&] {
    const uint32_t round = begin_round();
    for (const StreamOrder::Step& step : order.steps) {
      if (step.kind == StreamOrder::Step::Kind::kTask)
        launch(streams[step.stream], schedule_->tasks[step.index]);
      else if (step.kind == StreamOrder::Step::Kind::kRecord)
        streams[step.stream].record(points_[step.index], round, &event);
      else
        streams[step.stream].wait(points_[step.index], round, &event);
    }
  };
  try {
    race(is_inline, event, launch_in_order, launch_on_streams);
  } catch (const std::exception& e) {
    give_up_round(streams, event, e.what());
    throw;
  }
}

void BoundSchedule::give_up_round(const Streams& streams, Event& event, const char* what) noexcept {
  event.fail(schedule_->tasks.front().node, Status::kFailed, what);
  for (uint32_t i = 0; i < schedule_->streams.order.points; ++i) points_[i].record(round_, 0);
  try {
    for (uint32_t s = 1; s < streams.count(); ++s) streams[s].synchronize();
  } catch (const Error&) {
    // A child process after fork: its streams have no threads.
  }
}

}  // namespace asc
