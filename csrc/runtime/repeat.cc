#include "runtime/repeat.h"

#include <algorithm>
#include <cstring>

namespace asc {

void Repeat::see(const std::shared_ptr<BoundSchedule>& schedule, uint64_t runs) {
  if (schedule != schedule_) forget();
  schedule_ = schedule;
  last_use_ = runs;
}

void Repeat::make_ready(Signature signature, bool is_loaded, bool clears_results, const Plan& plan) {
  signature_ = std::move(signature);
  is_loaded_ = is_loaded;
  clears_results_ = clears_results;
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
  schedule_ = nullptr;
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
  last_use_ = ++counters.runs;
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

void Repeats::note(const std::shared_ptr<BoundSchedule>& schedule, uint64_t runs, bool is_loaded, bool clears_results,
                   const Plan& plan, const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs) {
  size_t place = 0;
  while (place < kMost && !places_[place].is_of(schedule)) ++place;
  if (place == kMost) {  // signatures that never come back would pay for getting ready
    const auto is_older = [](const Repeat& a, const Repeat& b) { return a.last_use() < b.last_use(); };
    std::min_element(places_.begin(), places_.end(), is_older)->see(schedule, runs);
    return;
  }
  Repeat& repeat = places_[place];
  repeat.see(schedule, runs);
  if (repeat.signature().id == 0)
    repeat.make_ready({++ready_ * kMost + place, inputs, outputs}, is_loaded, clears_results, plan);
}

void Repeats::forget() {
  for (Repeat& repeat : places_) repeat.forget();
}

std::vector<std::pair<size_t, Repeat::Signature>> Repeats::changes(const Ids& known) const {
  std::vector<std::pair<size_t, Repeat::Signature>> changed;
  for (size_t i = 0; i < kMost; ++i)
    if (places_[i].signature().id != known[i]) changed.emplace_back(i, places_[i].signature());
  return changed;
}

}  // namespace asc
