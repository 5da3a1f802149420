#include "backends/cpu/fused.h"
#include "base/hash.h"

namespace asc::cpu {
namespace {

char* at(void* base, size_t offset) { return static_cast<char*>(base) + offset; }

template <typename Entry>
void run_plain(const FusedUnit& u, const Entry& entry, void* result) {
  if (const auto* row = std::get_if<StepRow>(&u.what))
    row->run(entry, static_cast<float*>(result));
  else if (const auto* norm = std::get_if<NormRows>(&u.what))
    norm->run(entry, static_cast<float*>(result));
  else
    (*std::get_if<std::unique_ptr<ElementProgram>>(&u.what))->run(entry, result);
}

Status launch_units(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const FusedTiling*>(task.tiling);
  void* table[kMaxFusedTable];
  table[0] = nullptr;
  for (int i = 0; i < task.input_count; ++i) table[1 + i] = slots[task.operands[i]];
  void* const memory[] = {task.workspace(slots), const_cast<void*>(task.packed(slots)), task.output<void>(slots, 0)};
  for (const FusedTiling::Place& p : t.places) table[p.index] = at(memory[static_cast<int>(p.memory)], p.offset);
  for (const FusedUnit& u : t.units) {
    if (const auto* call = std::get_if<KernelCall>(&u.what)) {
      const Status status = call->task.launch(call->task, table, worker);
      if (__builtin_expect(status != Status::kOk, 0)) return status;
    } else if (const auto* alias = std::get_if<Alias>(&u.what)) {
      table[u.result] = table[alias->from];
    } else {
      run_plain(u, [&](uint32_t i) { return table[i]; }, table[u.result]);
    }
  }
  return Status::kOk;
}

// A single unit without a kernel of its own needs no table.
Status launch_unit(const Task& task, void* const* slots, Worker&) {
  const FusedUnit& u = static_cast<const FusedTiling*>(task.tiling)->units[0];
  run_plain(u, [&](uint32_t i) { return i ? slots[task.operands[i - 1]] : nullptr; }, task.output<void>(slots, 0));
  return Status::kOk;
}

void pack_inner(const Tiling& tiling, const void* const* inputs, void* packed) {
  for (const InnerTiling& inner : static_cast<const FusedTiling&>(tiling).inner) {
    if (inner.tiling->packed_bytes == 0) continue;
    const void* own[kMaxStepInputs] = {};
    for (size_t i = 0; i < kMaxStepInputs; ++i)
      if (inner.packed_inputs[i] != kNoValue) own[i] = inputs[inner.packed_inputs[i]];
    inner.tiling->pack(*inner.tiling, own, at(packed, inner.packed_offset));
  }
}

uint64_t packed_layout(const FusedTiling& t) {
  uint64_t layout = 0;
  for (const InnerTiling& inner : t.inner) {
    if (inner.tiling->packed_bytes == 0) continue;
    layout = mix64(layout ^ inner.tiling->packed_layout, inner.packed_offset);
    layout = mix64(layout, reinterpret_cast<uintptr_t>(inner.tiling->pack));
    for (ValueId v : inner.packed_inputs) layout = mix64(layout, static_cast<uint64_t>(v + 1));
  }
  return layout | 1;
}

}  // namespace

void finish_fused(FusedTiling* t) {
  for (FusedUnit& u : t->units)
    if (auto* call = std::get_if<KernelCall>(&u.what)) call->task.operands = call->operands;  // units move no more
  const bool is_plain = t->units.size() == 1 && !std::holds_alternative<KernelCall>(t->units[0].what);
  t->launch = is_plain ? launch_unit : launch_units;
  if (t->packed_bytes == 0) return;
  t->packed_layout = packed_layout(*t);
  t->pack = pack_inner;
}

size_t FusedTiling::bytes() const {
  size_t n = sizeof(FusedTiling) + places.capacity() * sizeof(Place) + units.capacity() * sizeof(FusedUnit);
  for (const InnerTiling& i : inner) n += sizeof(InnerTiling) + i.tiling->bytes();
  for (const FusedUnit& u : units)
    if (const auto* program = std::get_if<std::unique_ptr<ElementProgram>>(&u.what)) n += (*program)->bytes();
  return n;
}

}  // namespace asc::cpu
