#include "schedule/schedule.h"

#include <cstring>

namespace asc {
namespace {

class Builder {
 public:
  Builder(Resolver& resolver, size_t s)
      : resolver_(resolver),
        index_(s),
        segment_(resolver.plan().segments[s]),
        schedule_(std::make_shared<Schedule>()) {}

  std::shared_ptr<const Schedule> build(Recorder* recorder, uint32_t run) {
    for (size_t n = 0; n < segment_.nodes.size(); ++n) resolver_.resolve(index_, n, recorder, run);
    schedule_->table.assign(segment_.slots.size(), nullptr);
    fill_fixed_slots();
    add_tasks();
    place_in_arena();
    publish();
    count_bytes();
    return schedule_;
  }

 private:
  void fill_fixed_slots() {
    for (uint32_t i = 0; i < segment_.slots.size(); ++i) {
      const Slot& slot = segment_.slots[i];
      if (slot.kind == SlotKind::kConstant) {
        schedule_->table[i] = const_cast<void*>(resolver_.plan().values[slot.value].constant->data());
      } else if (slot.kind == SlotKind::kHost) {
        const std::shared_ptr<const HostTensor>& host = resolver_.host(slot.value);
        schedule_->table[i] = const_cast<void*>(host->data());
        schedule_->kept.push_back(host);
      } else if (slot.kind == SlotKind::kOutput) {
        schedule_->outputs.push_back({i, slot.value, slot_bytes(i)});
      }
    }
  }

  size_t slot_bytes(uint32_t slot) const {
    const PlanNode& node = segment_.nodes[segment_.slots[slot].node];
    for (size_t i = 0; i < node.node.outputs.size(); ++i)
      if (node.operands[node.node.inputs.size() + i] == slot)
        return resolver_.output_bytes(index_, segment_.slots[slot].node, i);
    return 0;
  }

  void add_tasks() {
    for (size_t n = 0; n < segment_.nodes.size(); ++n) {
      const PlanNode& node = segment_.nodes[n];
      if (!node.is_task()) continue;
      schedule_->tasks.push_back(resolver_.task(index_, n));
      schedule_->kept.push_back(resolver_.tiling(index_, n));
      if (const std::shared_ptr<const Buffer>& packed = resolver_.packed(index_, n)) {
        schedule_->table[node.operands[node.node.inputs.size() + node.node.outputs.size() + 1]] = packed->data();
        schedule_->kept.push_back(packed);
      }
      if (node.op->kind == OpKind::kDataDependent)
        for (size_t i = 0; i < node.node.outputs.size(); ++i)
          schedule_->bounds.emplace_back(n, resolver_.bound(index_, n, i));
    }
  }

  void place_in_arena() {
    std::vector<Lifetime> buffers;
    std::vector<uint32_t> slots;
    std::vector<uint32_t> last(segment_.slots.size(), 0);
    for (uint32_t n = 0; n < segment_.nodes.size(); ++n)
      for (uint32_t slot : segment_.nodes[n].dies_after) last[slot] = n;
    for (uint32_t i = 0; i < segment_.slots.size(); ++i) {
      const Slot& slot = segment_.slots[i];
      const uint32_t node = static_cast<uint32_t>(slot.node);
      if (slot.kind == SlotKind::kInternal) {
        buffers.push_back({node, last[i], slot_bytes(i)});
      } else if (slot.kind == SlotKind::kWorkspace && resolver_.tiling(index_, node)->workspace_bytes) {
        buffers.push_back({node, node, resolver_.tiling(index_, node)->workspace_bytes});
      } else {
        continue;
      }
      slots.push_back(i);
    }
    const MemoryPlan plan = plan_memory(buffers);
    schedule_->arena_bytes = plan.total_bytes;
    for (size_t i = 0; i < slots.size(); ++i) schedule_->arena_slots.push_back({slots[i], plan.offsets[i]});
  }

  void publish() {
    for (ValueId v : segment_.outputs) {
      const PlanValue& value = resolver_.plan().values[v];
      if (value.has_extent) continue;  // the sync point sets it
      const bool is_host = value.is_host && !value.is_read_back;
      schedule_->published.push_back({v, resolver_.shape(v), is_host ? resolver_.host(v) : nullptr});
    }
  }

  void count_bytes() {
    Schedule& s = *schedule_;
    s.bytes = sizeof(Schedule) + s.tasks.size() * sizeof(Task) + s.table.size() * sizeof(void*) +
              s.arena_slots.size() * sizeof(Schedule::ArenaSlot) + s.outputs.size() * sizeof(Schedule::OutputSlot) +
              s.published.size() * sizeof(Schedule::Published) + s.kept.size() * sizeof(s.kept[0]);
  }

  Resolver& resolver_;
  size_t index_;
  const Segment& segment_;
  std::shared_ptr<Schedule> schedule_;
};

}  // namespace

std::shared_ptr<const Schedule> build_schedule(Resolver& resolver, size_t s, Recorder* recorder, uint32_t run) {
  return Builder(resolver, s).build(recorder, run);
}

void make_signature(const Resolver& resolver, size_t s, Key& key) {
  key.clear();
  for (ValueId v : resolver.plan().segments[s].inputs) {
    const Shape& shape = resolver.shape(v);
    key.add(static_cast<uint64_t>(shape.rank()));
    for (int64_t d : shape) key.add(static_cast<uint64_t>(d));
    if (resolver.plan().values[v].is_host) key.add_bytes(resolver.host(v)->data(), resolver.host(v)->bytes());
  }
}

}  // namespace asc
