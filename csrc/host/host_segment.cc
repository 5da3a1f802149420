#include "host/host_segment.h"

#include "schedule/schedule_validator.h"

namespace asc {
namespace {

std::vector<void*> fixed_slots(const Plan& plan, const Segment& segment) {
  std::vector<void*> slots(segment.slots.size(), nullptr);
  for (size_t i = 0; i < slots.size(); ++i)
    if (segment.slots[i].kind == SlotKind::kConstant)
      slots[i] = const_cast<void*>(plan.values[segment.slots[i].value].constant->data());
  return slots;
}

}  // namespace

HostSegment::HostSegment(Resolver& resolver, size_t segment, Pool& pool, const StreamSettings& streams)
    : resolver_(resolver),
      index_(segment),
      segment_(resolver.plan().segments[segment]),
      tables_(std::make_shared<TableStore>(fixed_slots(resolver.plan(), segment_))),
      placements_(pool, segment_),
      streams_(resolver, segment, streams) {
  std::vector<bool> is_made_here(segment_.slots.size(), false);
  size_t extent_at = 0;
  for (const PlanNode& node : segment_.nodes) {
    steps_.push_back(make_step(node));
    steps_.back().extent_at = extent_at;
    if (steps_.back().extent) extent_at += kMaxRank * node.node.outputs.size();
    for (const auto& [slot, value] : steps_.back().hosts) is_made_here[slot] = true;
  }
  for (uint32_t i = 0; i < segment_.slots.size(); ++i) {
    const Slot& slot = segment_.slots[i];
    if (slot.kind == SlotKind::kInput) inputs_.emplace_back(i, slot.value);
    if (slot.kind == SlotKind::kHost && !is_made_here[i]) host_ins_.emplace_back(i, slot.value);
  }
}

HostSegment::Step HostSegment::make_step(const PlanNode& node) const {
  Step step;
  step.node = &node;
  if (node.is_on_host) {
    for (ValueId v : node.node.outputs)
      if (v != kNoValue && segment_.slots[segment_.slot_of[v]].kind == SlotKind::kHost)
        step.hosts.emplace_back(segment_.slot_of[v], v);
    return step;
  }
  step.is_task = node.is_task();
  if (!step.is_task) return step;
  const size_t inputs = node.node.inputs.size(), outputs = node.node.outputs.size();
  for (uint32_t i = 0; i < outputs; ++i) {
    const uint32_t slot = node.operands[inputs + i];
    if (slot == 0) continue;
    const bool is_internal = segment_.slots[slot].kind != SlotKind::kOutput;
    step.results.push_back({i, slot, is_internal ? kNoValue : segment_.slots[slot].value});
  }
  step.workspace = node.operands[inputs + outputs];
  step.packed = node.operands[inputs + outputs + 1];
  step.extent = node.operands[inputs + outputs + 2];
  return step;
}

HostSegment::Use HostSegment::begin(Frame& frame, RunContext& run, int64_t* extents) {
  Table& table = run.lease(tables_);
  if (table.version != placements_.version()) {
    const std::vector<void*>& data = placements_.data();
    for (size_t i = 0; i < data.size(); ++i)
      if (data[i]) table.slots[i] = data[i];
  }
  for (const auto& [slot, root] : inputs_) table.slots[slot] = frame.input(root);
  for (const auto& [slot, value] : host_ins_)
    if (const auto& host = resolver_.host(value)) table.slots[slot] = const_cast<void*>(host->data());
  const bool has_several = streams_.streams() > 1 && streams_.may_serve(run);
  if (has_several) streams_.begin(run);
  return {&frame,
          &run,
          &table,
          extents,
          table.losses != placements_.losses(),
          placements_.losses(),
          has_several ? &streams_ : nullptr};
}

template <class Timer>
void HostSegment::place(uint32_t n, bool has_changed, Use& use) {
  const Step& step = steps_[n];
  Table& table = *use.table;
  for (const auto& [slot, value] : step.hosts) table.slots[slot] = const_cast<void*>(resolver_.host(value)->data());
  if (!step.is_task) return;
  const Timer timer(use.run->recorder, Stage::kAlloc, use.run->run, static_cast<int32_t>(step.node->number));
  placements_.begin_node(n);
  if (has_changed || use.is_lost || use.losses != placements_.losses()) place_internals(n, step, table);
  for (const Result& r : step.results)
    if (r.root != kNoValue) table.slots[r.slot] = use.frame->place(r.root, resolver_.output_bytes(index_, n, r.output));
  if (step.extent) table.slots[step.extent] = use.extents + step.extent_at;
}

void HostSegment::place_internals(uint32_t n, const Step& step, Table& table) {
  for (const Result& r : step.results)
    if (r.root == kNoValue)
      table.slots[r.slot] = placements_.place(r.slot, resolver_.output_bytes(index_, n, r.output));
  const size_t workspace_bytes = resolver_.tiling(index_, n)->workspace_bytes;
  if (workspace_bytes) table.slots[step.workspace] = placements_.place(step.workspace, workspace_bytes);
  const std::shared_ptr<const Buffer>& packed = resolver_.packed(index_, n);
  table.slots[step.packed] = packed ? packed->data() : nullptr;
  placements_.put(step.packed, table.slots[step.packed]);
}

template <class Timer>
void HostSegment::launch(uint32_t n, const Use& use) {
  if (!steps_[n].is_task) return;
  if (use.streams) return launch_prepared<Timer>(n, use);
  launch_on<Timer>(*use.run->stream, n, use);
}

// Not inlined: one stream need not keep registers for what is called here.
template <class Timer>
__attribute__((noinline)) void HostSegment::launch_prepared(uint32_t n, const Use& use) {
  launch_on<Timer>(use.streams->prepare(n), n, use);
}

template <class Timer>
inline void HostSegment::launch_on(Stream& stream, uint32_t n, const Use& use) {
  RunContext& run = *use.run;
  const uint32_t sequence = ++run.sequence;
  const Timer timer(run.recorder, Stage::kLaunch, run.run, static_cast<int32_t>(steps_[n].node->number), sequence);
  stream.launch(resolver_.task(index_, n), use.table->slots.data(), run.event, sequence);
  ++run.counters->launches;
}

template void HostSegment::place<StageTimer>(uint32_t, bool, Use&);
template void HostSegment::place<NoTimer>(uint32_t, bool, Use&);
template void HostSegment::launch<StageTimer>(uint32_t, const Use&);
template void HostSegment::launch<NoTimer>(uint32_t, const Use&);

void HostSegment::end(Use& use, bool is_complete) {
  if (use.streams) use.streams->end(is_complete);
  placements_.end_run();
  if (!is_complete) placements_.doubt();  // nodes may have been resolved and not placed
  use.table->version = is_complete ? placements_.version() : 0;
  if (is_complete && use.losses == placements_.losses()) use.table->losses = use.losses;
}

std::string HostSegment::find_race() const {
  const std::shared_ptr<const StreamOrder> order = streams_.order();
  if (!order) return "";
  Schedule placed;
  placed.streams.order = *order;
  for (size_t n = 0; n < segment_.nodes.size(); ++n)
    if (segment_.nodes[n].is_task()) placed.tasks.push_back(resolver_.task(index_, n));
  for (uint32_t i = 0; i < segment_.slots.size(); ++i)
    if (const size_t bytes = placements_.bytes(i))
      placed.arena_slots.push_back({i, reinterpret_cast<size_t>(placements_.data()[i]), bytes});
  return asc::find_race(placed);
}

}  // namespace asc
