#include "schedule/schedule.h"

#include <algorithm>
#include <numeric>

#include "schedule/slot_uses.h"
#include "schedule/tables.h"
#include "schedule/task_cost.h"

namespace asc {
namespace {

constexpr uint32_t kNoBuffer = ~uint32_t{0};
// Search for a lower arena than the greedy ones: some tens of milliseconds at most, where none of them is optimal.
constexpr uint64_t kMostArenaSteps = 20'000, kArenaWork = 2'000'000;

class Builder {
 public:
  Builder(Resolver& resolver, size_t s, const StreamSettings& streams, MemoryMemo& memory, int64_t small)
      : resolver_(resolver),
        streams_(streams),
        memory_(memory),
        small_(small),
        index_(s),
        segment_(resolver.plan().segments[s]),
        schedule_(std::make_shared<Schedule>()) {}

  std::shared_ptr<const Schedule> build() {
    schedule_->table.assign(segment_.slots.size(), nullptr);
    fill_fixed_slots();
    add_tasks();
    const bool may_have_several = streams_.limits.most > 1 && schedule_->tasks.size() > 1;
    schedule_->streams = choose_streams(
        may_have_several ? make_stream_tasks(resolver_, index_, streams_.task_ns) : std::vector<StreamTask>{},
        streams_.limits);
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
      schedule_->bytes += table_bytes(*resolver_.tiling(index_, n));
      if (const std::shared_ptr<const Buffer>& packed = resolver_.packed(index_, n)) {
        schedule_->table[node.operands[node.node.inputs.size() + node.node.outputs.size() + 1]] = packed->data();
        schedule_->kept.push_back(packed);
      }
      if (node.op->kind == OpKind::kDataDependent)
        for (size_t i = 0; i < node.node.outputs.size(); ++i)
          schedule_->bounds.emplace_back(n, resolver_.bound(index_, n, i));
    }
  }

  // Internal values and workspaces, as buffers that live from their node to that of their last reader. A result that
  // its kernel may write over a dying input shares that one's buffer. On several streams, buffers whose tasks no stream
  // and no event orders are in conflict.
  void place_in_arena() {
    MemoryProblem problem;
    problem.alignment = static_cast<int64_t>(kAlignment);
    std::vector<std::pair<uint32_t, uint32_t>> placed;  // slot and buffer
    std::vector<uint32_t> buffer_of(segment_.slots.size(), kNoBuffer);
    std::vector<uint32_t> last(segment_.slots.size(), 0);
    for (uint32_t n = 0; n < segment_.nodes.size(); ++n)
      for (uint32_t slot : segment_.nodes[n].dies_after) last[slot] = n;
    SlotUses uses(segment_, schedule_->streams.order);
    for (const uint32_t i : slots_by_node()) {
      const Slot& slot = segment_.slots[i];
      const uint32_t node = static_cast<uint32_t>(slot.node);
      const bool is_internal = slot.kind == SlotKind::kInternal;
      const size_t bytes = is_internal ? slot_bytes(i) : resolver_.tiling(index_, node)->workspace_bytes;
      const int64_t end = std::max<int64_t>(node, is_internal ? last[i] : node) + 1;
      if (const uint32_t below = is_internal ? input_below(i) : 0;
          below && buffer_of[below] != kNoBuffer && uses.all_before(buffer_of[below], node)) {
        buffer_of[i] = buffer_of[below];
        problem.buffers[buffer_of[i]].upper = end;
      } else {
        buffer_of[i] = static_cast<uint32_t>(problem.buffers.size());
        problem.buffers.push_back({node, end, static_cast<int64_t>(bytes)});
      }
      uses.add(buffer_of[i], i, node);
      placed.emplace_back(i, buffer_of[i]);
    }
    problem.conflicts = uses.find_conflicts(problem);
    MemoryLimits limits;
    limits.small = small_;
    limits.steps = std::min<uint64_t>(kMostArenaSteps, kArenaWork / (problem.buffers.size() + 1));
    const MemorySolution solution = memory_.solve(problem, limits);
    schedule_->arena_bytes = static_cast<size_t>(solution.height);
    schedule_->arena_bound = static_cast<size_t>(solution.lower_bound);
    for (const auto& [slot, buffer] : placed)
      schedule_->arena_slots.push_back(
          {slot, static_cast<size_t>(solution.offsets[buffer]), static_cast<size_t>(problem.buffers[buffer].bytes)});
  }

  // Slots with memory in the arena, in the order of the nodes that write them.
  std::vector<uint32_t> slots_by_node() const {
    std::vector<uint32_t> slots, begins(segment_.nodes.size() + 1, 0);
    const auto for_each = [&](const auto& call) {
      for (uint32_t i = 0; i < segment_.slots.size(); ++i) {
        const Slot& slot = segment_.slots[i];
        const bool has_workspace = slot.kind == SlotKind::kWorkspace &&
                                   resolver_.tiling(index_, static_cast<size_t>(slot.node))->workspace_bytes;
        if (slot.kind == SlotKind::kInternal || has_workspace) call(i, static_cast<size_t>(slot.node));
      }
    };
    for_each([&](uint32_t, size_t node) { ++begins[node + 1]; });
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    slots.resize(begins.back());
    for_each([&](uint32_t i, size_t node) { slots[begins[node]++] = i; });
    return slots;
  }

  // The slot of an input that dies at the node of `slot` and that its kernel may write it over; 0 where there is none.
  uint32_t input_below(uint32_t slot) const {
    const size_t n = static_cast<size_t>(segment_.slots[slot].node);
    const PlanNode& node = segment_.nodes[n];
    const size_t inputs = node.node.inputs.size();
    if (!node.is_task() || !resolver_.tiling(index_, n)->over_inputs || node.operands[inputs] != slot) return 0;
    for (uint32_t candidate : node.dies_after) {
      bool may_lie_over = false, may_not = false;
      for (size_t i = 0; i < inputs; ++i) {
        if (node.operands[i] != candidate) continue;
        const bool is_allowed = i < 64 && (resolver_.tiling(index_, n)->over_inputs >> i & 1);
        (is_allowed ? may_lie_over : may_not) = true;
      }
      const bool is_internal = segment_.slots[candidate].kind == SlotKind::kInternal;
      if (may_lie_over && !may_not && is_internal && slot_bytes(candidate) == slot_bytes(slot)) return candidate;
    }
    return 0;
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
    s.bytes += sizeof(Schedule) + s.tasks.size() * sizeof(Task) + s.table.size() * sizeof(void*) +
               s.arena_slots.size() * sizeof(Schedule::ArenaSlot) + s.outputs.size() * sizeof(Schedule::OutputSlot) +
               s.streams.order.steps.size() * sizeof(StreamOrder::Step) +
               (s.streams.order.clocks.size() + 2 * s.streams.order.stream_of.size()) * sizeof(uint32_t) +
               s.published.size() * sizeof(Schedule::Published) + s.kept.size() * sizeof(s.kept[0]);
  }

  Resolver& resolver_;
  const StreamSettings& streams_;
  MemoryMemo& memory_;
  const int64_t small_;
  size_t index_;
  const Segment& segment_;
  std::shared_ptr<Schedule> schedule_;
};

}  // namespace

std::shared_ptr<const Schedule> build_schedule(Resolver& resolver, size_t s, const StreamSettings& streams,
                                               MemoryMemo& memory, int64_t small) {
  return Builder(resolver, s, streams, memory, small).build();
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
