#include "runtime/repeat.h"

#include <cstring>

namespace asc {

void Repeat::note(const std::shared_ptr<BoundSchedule>& schedule, bool is_loaded, bool clears_results, const Plan& plan,
                  const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs) {
  if (schedule == schedule_) return;
  if (schedule != seen_) {  // signatures that take turns would each pay for getting ready
    seen_ = schedule;
    return;
  }
  forget();
  schedule_ = schedule;
  is_loaded_ = is_loaded;
  clears_results_ = clears_results;
  make_ready(plan);
  signature_ = {++last_id_, inputs, outputs};
}

void Repeat::make_ready(const Plan& plan) {
  lease_ = schedule_->take_table();
  const auto position = [](const std::vector<ValueId>& values, const Plan& p, ValueId root) {
    size_t i = 0;
    while (i < values.size() && p.values[values[i]].root != root) ++i;
    return i;
  };
  for (const auto& in : schedule_->inputs()) inputs_.emplace_back(in.slot, position(plan.inputs, plan, in.root));
  for (const auto& out : schedule_->schedule().outputs)
    outputs_.emplace_back(out.slot, position(plan.outputs, plan, out.root));
}

void Repeat::forget() {
  signature_ = {};
  lease_ = {};
  schedule_ = seen_ = nullptr;
  inputs_.clear();
  outputs_.clear();
}

void Repeat::run(void* const* inputs, void* const* outputs, const std::byte* arena, const Streams& streams,
                 Event& event, RunCounters& counters, uint32_t& sequence) {
  Table& table = lease_.table();
  const Schedule& schedule = schedule_->schedule();
  if (table.arena_base != arena) {
    for (const Schedule::ArenaSlot& a : schedule.arena_slots)
      table.slots[a.slot] = const_cast<std::byte*>(arena) + a.offset;
    table.arena_base = arena;
  }
  for (const auto& [slot, i] : inputs_) table.slots[slot] = inputs[i];
  for (const auto& [slot, i] : outputs_) table.slots[slot] = outputs[i];
  if (clears_results_)
    for (const Schedule::OutputSlot& out : schedule.outputs)
      if (out.bytes) std::memset(table.slots[out.slot], 0, out.bytes);
  ++counters.runs;
  counters.stream_waits += schedule.streams.waits;
  if (is_loaded_) {
    static_cast<LoadedSchedule&>(*schedule_).submit_chains(streams, table.slots.data(), event, ++sequence, true);
    ++counters.submits;
    counters.submitted_tasks += schedule.tasks.size();
    return;
  }
  schedule_->launch_tasks(streams, table.slots.data(), event, sequence, true);
  counters.launches += schedule.tasks.size();
  ++counters.replays;
}

}  // namespace asc
