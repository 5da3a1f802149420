#include "schedule/bound_schedule.h"

namespace asc {

BoundSchedule::BoundSchedule(std::shared_ptr<const Schedule> schedule, const Plan& plan, size_t segment)
    : schedule_(std::move(schedule)), tables_(std::make_shared<TableStore>(schedule_->table)) {
  const Segment& s = plan.segments[segment];
  for (uint32_t i = 0; i < s.slots.size(); ++i)
    if (s.slots[i].kind == SlotKind::kInput) inputs_.push_back({i, s.slots[i].value});
  size_t at = 0;
  for (uint32_t n : s.extent_nodes) {
    extents_.emplace_back(s.nodes[n].operands.back(), at);
    at += kMaxRank * s.nodes[n].node.outputs.size();
  }
  bytes_ = schedule_->bytes + s.slots.size() * sizeof(void*) + sizeof(*this);
}

Table& BoundSchedule::lease(const std::shared_ptr<BoundSchedule>& self, Frame& frame, RunContext& run,
                            int64_t* extents) {
  const Schedule& schedule = *self->schedule_;
  const std::shared_ptr<Arena::Slab>& slab = run.arena->reserve(schedule.arena_bytes);
  const std::byte* base = slab ? slab->base() : nullptr;
  Table& table = run.lease(self->tables_);
  run.holdings->kept.push_back(self);
  if (!run.is_inline) run.holdings->kept.push_back(slab);
  if (table.arena_base != base) {
    for (const Schedule::ArenaSlot& a : schedule.arena_slots) table.slots[a.slot] = slab->base() + a.offset;
    table.arena_base = base;
  }
  for (const InputSlot& in : self->inputs_) table.slots[in.slot] = frame.input(in.root);
  for (const Schedule::OutputSlot& out : schedule.outputs) table.slots[out.slot] = frame.place(out.root, out.bytes);
  for (const auto& [slot, offset] : self->extents_) table.slots[slot] = extents + offset;
  return table;
}

}  // namespace asc
