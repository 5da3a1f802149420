#include "sink/loaded_schedule.h"

namespace asc {

LoadedSchedule::LoadedSchedule(std::shared_ptr<const Schedule> schedule, const Plan& plan, size_t segment,
                               Device& device)
    : BoundSchedule(std::move(schedule), plan, segment), in_order_(device.create_chain()) {
  using Kind = StreamOrder::Step::Kind;
  const StreamOrder& order = this->schedule().streams.order;
  for (const Task& t : this->schedule().tasks) in_order_->add_task(t);
  in_order_->load();
  if (order.is_single()) return;
  for (uint32_t s = 0; s < order.streams; ++s) chains_.push_back(device.create_chain());
  for (const StreamOrder::Step& step : order.steps) {
    TaskChain& chain = *chains_[step.stream];
    if (step.kind == Kind::kTask)
      chain.add_task(this->schedule().tasks[step.index]);
    else if (step.kind == Kind::kRecord)
      chain.add_record(point(step.index));
    else
      chain.add_wait(point(step.index));
  }
  for (const auto& chain : chains_) chain->load();
}

size_t LoadedSchedule::bytes() const {
  size_t sum = BoundSchedule::bytes() + in_order_->bytes();
  for (const auto& chain : chains_) sum += chain->bytes();
  return sum;
}

void LoadedSchedule::submit(const std::shared_ptr<LoadedSchedule>& self, Frame& frame, RunContext& run,
                            int64_t* extents) {
  const Table& table = lease(self, frame, run, extents);
  const uint32_t sequence = ++run.sequence;
  StageTimer timer(run.recorder, Stage::kSubmit, run.run, -1, sequence);
  self->submit_chains(*run.streams, table.slots.data(), *run.event, sequence, run.is_inline);
  ++run.counters->submits;
  run.counters->submitted_tasks += self->schedule().tasks.size();
  run.counters->stream_waits += self->schedule().streams.waits;
}

// The first stream comes last: where it runs inline, it runs through.
void LoadedSchedule::submit_on_streams(const Streams& streams, void* const* slots, Event& event, uint32_t sequence,
                                       bool is_inline) {
  const auto on_one = [&] { streams.first().submit(*in_order_, slots, &event, sequence); };
  const auto on_streams = [&] {
    const uint32_t round = begin_round();
    for (size_t s = chains_.size(); s-- > 0;)
      streams[static_cast<uint32_t>(s)].submit(*chains_[s], slots, &event, sequence, round);
  };
  try {
    race(is_inline, event, on_one, on_streams);
  } catch (const std::exception& e) {
    give_up_round(streams, event, e.what());
    throw;
  }
}

}  // namespace asc
