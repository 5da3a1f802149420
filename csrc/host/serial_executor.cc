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

SerialExecutor::SerialExecutor(Resolver& resolver, size_t segment)
    : resolver_(resolver),
      index_(segment),
      segment_(resolver.plan().segments[segment]),
      tables_(std::make_shared<TableStore>(fixed_slots(resolver.plan(), segment_))),
      block_bytes_(segment_.slots.size(), 0) {}

void SerialExecutor::run(Frame& frame, RunContext& run, int64_t* extents) {
  Table& table = run.lease(tables_);
  bind_inputs(frame, table);
  try {
    launch_all(frame, run, table, extents);
  } catch (...) {
    for (uint32_t slot = 0; slot < block_bytes_.size(); ++slot) release(slot, run, table);
    throw;
  }
}

void SerialExecutor::launch_all(Frame& frame, RunContext& run, Table& table, int64_t* extents) {
  for (size_t n = 0; n < segment_.nodes.size(); ++n) {
    const PlanNode& node = segment_.nodes[n];
    resolver_.resolve(index_, n, run.recorder, run.run);
    if (node.is_on_host) {
      for (ValueId v : node.node.outputs)
        if (v != kNoValue && segment_.slots[segment_.slot_of[v]].kind == SlotKind::kHost)
          table.slots[segment_.slot_of[v]] = const_cast<void*>(resolver_.host(v)->data());
      continue;
    }
    if (!node.is_task()) continue;
    {
      StageTimer timer(run.recorder, Stage::kAlloc, run.run, static_cast<int32_t>(node.number));
      allocate(n, frame, run, table);
      if (node.op->kind == OpKind::kDataDependent) {
        table.slots[node.operands.back()] = extents;
        extents += kMaxRank * node.node.outputs.size();
      }
    }
    const uint32_t sequence = ++run.sequence;
    {
      StageTimer timer(run.recorder, Stage::kLaunch, run.run, static_cast<int32_t>(node.number), sequence);
      run.stream->launch(resolver_.task(index_, n), table.slots.data(), run.event, sequence);
      ++run.counters->launches;
    }
    release_dead(node, run, table);
  }
}

void SerialExecutor::bind_inputs(Frame& frame, Table& table) const {
  for (size_t i = 0; i < segment_.slots.size(); ++i) {
    const Slot& slot = segment_.slots[i];
    if (slot.kind == SlotKind::kInput)
      table.slots[i] = frame.input(slot.value);
    else if (slot.kind == SlotKind::kHost && resolver_.host(slot.value))
      table.slots[i] = const_cast<void*>(resolver_.host(slot.value)->data());
  }
}

void SerialExecutor::allocate(size_t n, Frame& frame, RunContext& run, Table& table) {
  const PlanNode& node = segment_.nodes[n];
  const size_t inputs = node.node.inputs.size(), outputs = node.node.outputs.size();
  for (size_t i = 0; i < outputs; ++i) {
    const uint32_t slot = node.operands[inputs + i];
    if (slot == 0) continue;
    const size_t bytes = resolver_.output_bytes(index_, n, i);
    if (segment_.slots[slot].kind == SlotKind::kOutput) {
      table.slots[slot] = frame.place(segment_.slots[slot].value, bytes);
    } else {
      const Block block = run.pool->allocate(bytes);
      table.slots[slot] = block.data;
      block_bytes_[slot] = block.bytes;
    }
  }
  const uint32_t workspace = node.operands[inputs + outputs], packed = node.operands[inputs + outputs + 1];
  const size_t workspace_bytes = resolver_.tiling(index_, n)->workspace_bytes;
  table.slots[workspace] = nullptr;
  if (workspace_bytes) {
    const Block block = run.pool->allocate(workspace_bytes);
    table.slots[workspace] = block.data;
    block_bytes_[workspace] = block.bytes;
  }
  const std::shared_ptr<const Buffer>& packed_buffer = resolver_.packed(index_, n);
  table.slots[packed] = packed_buffer ? packed_buffer->data() : nullptr;
}

void SerialExecutor::release_dead(const PlanNode& node, RunContext& run, Table& table) {
  for (uint32_t slot : node.dies_after) release(slot, run, table);
  release(node.operands[node.node.inputs.size() + node.node.outputs.size()], run, table);
}

void SerialExecutor::release(uint32_t slot, RunContext& run, Table& table) {
  if (block_bytes_[slot] == 0) return;
  run.pool->release({table.slots[slot], block_bytes_[slot]});
  block_bytes_[slot] = 0;
}

}  // namespace asc
