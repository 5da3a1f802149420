#include "backends/cpu/fused.h"
#include "base/hash.h"

namespace asc::cpu {
namespace {

using Kind = FusedUnit::Kind;

char* at(void* base, size_t offset) { return static_cast<char*>(base) + offset; }

Status launch_units(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const FusedTiling*>(task.tiling);
  void* table[kMaxFusedTable];
  table[0] = nullptr;
  for (int i = 0; i < task.input_count; ++i) table[1 + i] = slots[task.operands[i]];
  void* const memory[] = {task.workspace(slots), const_cast<void*>(task.packed(slots)), task.output<void>(slots, 0)};
  for (const FusedTiling::Place& p : t.places) table[p.index] = at(memory[static_cast<int>(p.memory)], p.offset);
  const auto entry = [&](uint32_t i) { return table[i]; };
  for (const FusedUnit& u : t.units) {
    auto* result = static_cast<float*>(table[u.result]);
    switch (u.kind) {
      case Kind::kRow:
        u.row.run(entry, result);
        break;
      case Kind::kProgram:
        u.program->run(entry, result);
        break;
      case Kind::kNorm:
        u.norm.run(entry, result);
        break;
      case Kind::kKernel: {
        const Status status = u.task.launch(u.task, table, worker);
        if (__builtin_expect(status != Status::kOk, 0)) return status;
        break;
      }
    }
  }
  return Status::kOk;
}

// A single unit without a kernel of its own needs no table.
Status launch_unit(const Task& task, void* const* slots, Worker&) {
  const FusedUnit& u = static_cast<const FusedTiling*>(task.tiling)->units[0];
  const auto entry = [&](uint32_t i) { return i ? slots[task.operands[i - 1]] : nullptr; };
  auto* result = task.output<float>(slots, 0);
  if (u.kind == Kind::kNorm)
    u.norm.run(entry, result);
  else if (u.kind == Kind::kRow)
    u.row.run(entry, result);
  else
    u.program->run(entry, result);
  return Status::kOk;
}

void pack_units(const Tiling& tiling, const void* const* inputs, void* packed) {
  for (const FusedUnit& u : static_cast<const FusedTiling&>(tiling).units) {
    if (!u.inner || u.inner->packed_bytes == 0) continue;
    const void* own[kMaxStepInputs] = {};
    for (size_t i = 0; i < kMaxStepInputs; ++i)
      if (u.packed_inputs[i] != kNoValue) own[i] = inputs[u.packed_inputs[i]];
    u.inner->pack(*u.inner, own, at(packed, u.packed_offset));
  }
}

uint64_t packed_layout(const FusedTiling& t) {
  uint64_t layout = 0;
  for (const FusedUnit& u : t.units) {
    if (!u.inner || u.inner->packed_bytes == 0) continue;
    layout = mix64(layout ^ u.inner->packed_layout, u.packed_offset);
    for (ValueId v : u.packed_inputs) layout = mix64(layout, static_cast<uint64_t>(v + 1));
  }
  return layout | 1;
}

}  // namespace

void finish_fused(FusedTiling* t) {
  for (FusedUnit& u : t->units) u.task.operands = u.operands;  // they move no more
  t->launch = t->units.size() == 1 && t->units[0].kind != Kind::kKernel ? launch_unit : launch_units;
  if (t->packed_bytes == 0) return;
  t->packed_layout = packed_layout(*t);
  t->pack = pack_units;
}

size_t FusedTiling::bytes() const {
  size_t n = sizeof(FusedTiling) + places.capacity() * sizeof(Place) + units.capacity() * sizeof(FusedUnit);
  for (const FusedUnit& u : units) n += (u.inner ? u.inner->bytes() : 0) + (u.program ? u.program->bytes() : 0);
  return n;
}

}  // namespace asc::cpu
