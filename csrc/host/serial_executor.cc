#include "host/serial_executor.h"

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

SerialExecutor::SerialExecutor(Resolver& resolver, size_t segment, Pool& pool)
    : resolver_(resolver),
      index_(segment),
      segment_(resolver.plan().segments[segment]),
      tables_(std::make_shared<TableStore>(fixed_slots(resolver.plan(), segment_))),
      placements_(pool, segment_) {
  std::vector<bool> is_made_here(segment_.slots.size(), false);
  for (const PlanNode& node : segment_.nodes) {
    steps_.push_back(make_step(node));
    for (const auto& [slot, value] : steps_.back().hosts) is_made_here[slot] = true;
  }
  for (uint32_t i = 0; i < segment_.slots.size(); ++i) {
    const Slot& slot = segment_.slots[i];
    if (slot.kind == SlotKind::kInput) inputs_.emplace_back(i, slot.value);
    if (slot.kind == SlotKind::kHost && !is_made_here[i]) host_ins_.emplace_back(i, slot.value);
  }
}

SerialExecutor::Step SerialExecutor::make_step(const PlanNode& node) const {
  Step step;
  step.node = &node;
  if (node.is_on_host) {
    for (ValueId v : node.node.outputs)
      if (v != kNoValue && segment_.slots[segment_.slot_of[v]].kind == SlotKind::kHost)
        step.hosts.emplace_back(segment_.slot_of[v], v);
    return step;
  }
  if (!node.is_task()) return step;
  const size_t inputs = node.node.inputs.size(), outputs = node.node.outputs.size();
  for (uint32_t i = 0; i < outputs; ++i) {
    const uint32_t slot = node.operands[inputs + i];
    if (slot == 0) continue;
    const bool is_internal = segment_.slots[slot].kind != SlotKind::kOutput;
    step.results.push_back({i, slot, is_internal ? kNoValue : segment_.slots[slot].value});
    step.has_internal |= is_internal;
  }
  step.workspace = node.operands[inputs + outputs];
  step.packed = node.operands[inputs + outputs + 1];
  step.extent = node.operands[inputs + outputs + 2];
  return step;
}

void SerialExecutor::run(Frame& frame, RunContext& run, int64_t* extents) {
  Table& table = lease(frame, run);
  try {
    launch_all(frame, run, table, extents);
  } catch (...) {
    placements_.end_run();
    table.version = 0;
    throw;
  }
  placements_.end_run();
}

Table& SerialExecutor::lease(Frame& frame, RunContext& run) {
  Table& table = run.lease(tables_);
  if (table.version != placements_.version()) {
    const std::vector<void*>& data = placements_.data();
    for (size_t i = 0; i < data.size(); ++i)
      if (data[i]) table.slots[i] = data[i];
  }
  for (const auto& [slot, root] : inputs_) table.slots[slot] = frame.input(root);
  for (const auto& [slot, value] : host_ins_)
    if (const auto& host = resolver_.host(value)) table.slots[slot] = const_cast<void*>(host->data());
  return table;
}

void SerialExecutor::launch_all(Frame& frame, RunContext& run, Table& table, int64_t* extents) {
  const bool is_lost = table.losses != placements_.losses();
  const uint64_t losses = placements_.losses();
  for (uint32_t n = 0; n < steps_.size(); ++n) {
    const Step& step = steps_[n];
    const PlanNode& node = *step.node;
    const bool has_changed = resolver_.resolve(index_, n, run.recorder, run.run);
    for (const auto& [slot, value] : step.hosts) table.slots[slot] = const_cast<void*>(resolver_.host(value)->data());
    if (!node.is_task()) continue;
    {
      StageTimer timer(run.recorder, Stage::kAlloc, run.run, static_cast<int32_t>(node.number));
      if (has_changed || is_lost || losses != placements_.losses()) place(n, step, table);
      for (const Result& r : step.results)
        if (r.root != kNoValue) table.slots[r.slot] = frame.place(r.root, resolver_.output_bytes(index_, n, r.output));
      if (step.extent) {
        table.slots[step.extent] = extents;
        extents += kMaxRank * node.node.outputs.size();
      }
    }
    const uint32_t sequence = ++run.sequence;
    StageTimer timer(run.recorder, Stage::kLaunch, run.run, static_cast<int32_t>(node.number), sequence);
    run.stream->launch(resolver_.task(index_, n), table.slots.data(), run.event, sequence);
    ++run.counters->launches;
  }
  table.version = placements_.version();
  if (losses == placements_.losses()) table.losses = losses;
}

void SerialExecutor::place(uint32_t n, const Step& step, Table& table) {
  for (const Result& r : step.results)
    if (r.root == kNoValue)
      table.slots[r.slot] = placements_.place(r.slot, resolver_.output_bytes(index_, n, r.output), n);
  const size_t workspace_bytes = resolver_.tiling(index_, n)->workspace_bytes;
  if (workspace_bytes) table.slots[step.workspace] = placements_.place(step.workspace, workspace_bytes, n);
  const std::shared_ptr<const Buffer>& packed = resolver_.packed(index_, n);
  table.slots[step.packed] = packed ? packed->data() : nullptr;
  placements_.put(step.packed, table.slots[step.packed]);
}

void SerialExecutor::replay(const std::shared_ptr<BoundSchedule>& schedule, Frame& frame, RunContext& run,
                            int64_t* extents) {
  const Table& table = BoundSchedule::lease(schedule, frame, run, extents);
  for (const Task& task : schedule->schedule().tasks) {
    const uint32_t sequence = ++run.sequence;
    StageTimer timer(run.recorder, Stage::kLaunch, run.run, static_cast<int32_t>(task.node), sequence);
    run.stream->launch(task, table.slots.data(), run.event, sequence);
  }
  run.counters->launches += schedule->schedule().tasks.size();
  ++run.counters->replays;
}

}  // namespace asc
