#include "sink/loaded_schedule.h"

namespace asc {

LoadedSchedule::LoadedSchedule(std::shared_ptr<const Schedule> schedule, const Plan& plan, size_t segment,
                               Device& device)
    : BoundSchedule(std::move(schedule), plan, segment), chain_(device.create_chain()) {
  for (const Task& t : this->schedule().tasks) chain_->add_task(t);
  chain_->load();
}

void LoadedSchedule::submit(const std::shared_ptr<LoadedSchedule>& self, Frame& frame, RunContext& run,
                            int64_t* extents) {
  const Table& table = lease(self, frame, run, extents);
  const uint32_t sequence = ++run.sequence;
  StageTimer timer(run.recorder, Stage::kSubmit, run.run, -1, sequence);
  run.stream->submit(*self->chain_, table.slots.data(), run.event, sequence);
  ++run.counters->submits;
  run.counters->submitted_tasks += self->schedule().tasks.size();
}

}  // namespace asc
