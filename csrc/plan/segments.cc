// Cuts a level into segments. A node's depth is the number of sync points and control nodes that must be behind it;
// nodes of equal depth form one task segment, then come the control nodes of that depth.
#include <algorithm>

#include "plan/builder.h"

namespace asc {
namespace {

class Cutter {
 public:
  explicit Cutter(LevelBuilder& b) : b_(b), ready_(b.values.size(), 0), from_control_(b.values.size(), false) {}

  std::vector<Segment> run() {
    assign_depths();
    build_segments();
    find_crossings();
    for (size_t s = 0; s < segments_.size(); ++s) finish(s);
    return std::move(segments_);
  }

 private:
  void assign_depths() {
    for (const PlanNode& p : b_.nodes) {
      const bool is_control = p.op->kind == OpKind::kControl;
      int depth = 0;
      for (size_t i = 0; i < p.node.inputs.size(); ++i) {
        const ValueId v = p.node.inputs[i];
        if (v == kNoValue) continue;
        const bool reads_on_host = p.is_on_host || (i < 64 && ((p.op->host_inputs >> i) & 1u));
        // A control node follows the sync that ends the tasks of its own depth.
        const bool reads_back = b_.values[v].is_read_back && reads_on_host && !from_control_[v];
        const bool waits = (b_.values[v].has_extent || reads_back) && !is_control;
        depth = std::max(depth, ready_[v] + (waits ? 1 : 0));
      }
      depths_.push_back(depth);
      for (ValueId v : p.node.outputs)
        if (v != kNoValue) {
          ready_[v] = depth + (is_control ? 1 : 0);  // read back, if at all, at the end of the control segment
          from_control_[v] = is_control;
        }
    }
  }

  void build_segments() {
    const int last = depths_.empty() ? 0 : *std::max_element(depths_.begin(), depths_.end());
    for (int depth = 0; depth <= last; ++depth) {
      Segment tasks;
      if (last == 0) tasks.nodes.reserve(b_.nodes.size());
      for (size_t i = 0; i < b_.nodes.size(); ++i)
        if (depths_[i] == depth && b_.nodes[i].op->kind != OpKind::kControl)
          tasks.nodes.push_back(std::move(b_.nodes[i]));
      if (!tasks.nodes.empty()) segments_.push_back(std::move(tasks));
      for (size_t i = 0; i < b_.nodes.size(); ++i) {
        if (depths_[i] != depth || b_.nodes[i].op->kind != OpKind::kControl) continue;
        Segment control;
        control.kind = b_.nodes[i].node.op == "If" ? SegmentKind::kIf : SegmentKind::kLoop;
        control.bodies = b_.bodies[static_cast<int>(b_.nodes[i].number)];
        control.nodes.push_back(std::move(b_.nodes[i]));
        segments_.push_back(std::move(control));
      }
    }
  }

  // Which values, and which roots, are read after the segment that makes them.
  void find_crossings() {
    const int count = static_cast<int>(segments_.size());
    made_in_.assign(b_.values.size(), -1);
    last_use_.assign(b_.values.size(), -1);
    last_root_use_.assign(b_.values.size(), -1);
    auto use = [&](ValueId v, int at) {
      last_use_[v] = std::max(last_use_[v], at);
      last_root_use_[b_.values[v].root] = std::max(last_root_use_[b_.values[v].root], at);
    };
    for (int s = 0; s < count; ++s)
      for (const PlanNode& p : segments_[s].nodes) {
        for (ValueId v : p.node.outputs)
          if (v != kNoValue) made_in_[v] = s;
        for (ValueId v : p.node.inputs)
          if (v != kNoValue) use(v, s);
      }
    for (ValueId v : b_.outputs) use(v, count);
    for (size_t i = 0; i < b_.host_outputs.size(); ++i)
      if (b_.host_outputs[i]) use(b_.graph.outputs()[i], count);
  }

  bool is_device_data(ValueId v) const {
    return !b_.values[v].constant && (!b_.values[v].is_host || b_.values[v].is_read_back || made_in_[v] < 0);
  }

  void finish(size_t at) {
    Segment& s = segments_[at];
    const int here = static_cast<int>(at);
    std::vector<bool> seen(b_.values.size(), false);
    for (const PlanNode& p : s.nodes)
      for (ValueId v : p.node.inputs) {
        if (v == kNoValue || b_.values[v].constant || made_in_[v] == here || seen[v]) continue;
        seen[v] = true;
        s.inputs.push_back(v);
        const ValueId root = b_.values[v].root;  // a host value behind a data view is read as an operand
        if (root == v || seen[root] || b_.values[root].constant || made_in_[root] == here || is_device_data(root))
          continue;
        seen[root] = true;
        s.inputs.push_back(root);
      }
    for (size_t n = 0; n < s.nodes.size(); ++n) {
      for (ValueId v : s.nodes[n].node.outputs) {
        if (v == kNoValue) continue;
        if (last_use_[v] > here || (!is_device_data(v) && last_root_use_[v] > here)) s.outputs.push_back(v);
        if (b_.values[v].is_read_back) s.read_backs.push_back(v);
      }
      if (s.nodes[n].op->kind == OpKind::kDataDependent) s.extent_nodes.push_back(static_cast<uint32_t>(n));
    }
    if (s.kind == SegmentKind::kTasks) assign_slots(s, here);
  }

  void assign_slots(Segment& s, int here) {
    s.slots.push_back({});
    s.slot_of.assign(b_.values.size(), 0);
    std::vector<int32_t> last_node;  // by slot: last reader or writer
    for (size_t n = 0; n < s.nodes.size(); ++n) {
      PlanNode& p = s.nodes[n];
      if (!p.is_task()) continue;
      for (ValueId v : p.node.inputs) p.operands.push_back(slot_for(s, v, here, static_cast<int32_t>(n)));
      for (ValueId v : p.node.outputs) p.operands.push_back(slot_for(s, v, here, static_cast<int32_t>(n)));
      for (SlotKind kind : {SlotKind::kWorkspace, SlotKind::kPacked, SlotKind::kExtent}) {
        if (kind == SlotKind::kExtent && p.op->kind != OpKind::kDataDependent) {
          p.operands.push_back(0);
          continue;
        }
        p.operands.push_back(static_cast<uint32_t>(s.slots.size()));
        s.slots.push_back({kind, kNoValue, static_cast<int32_t>(n)});
      }
      last_node.resize(s.slots.size(), -1);
      for (size_t i = 0; i < p.node.inputs.size() + p.node.outputs.size(); ++i)
        last_node[p.operands[i]] = static_cast<int32_t>(n);
    }
    for (uint32_t slot = 0; slot < s.slots.size(); ++slot)
      if (s.slots[slot].kind == SlotKind::kInternal) s.nodes[last_node[slot]].dies_after.push_back(slot);
    for (ValueId v = 0; v < static_cast<ValueId>(b_.values.size()); ++v)
      if (s.slot_of[v] == 0) s.slot_of[v] = s.slot_of[b_.values[v].root];
  }

  uint32_t slot_for(Segment& s, ValueId v, int here, int32_t node) {
    if (v == kNoValue) return 0;
    const ValueId root = b_.values[v].root;
    if (s.slot_of[root]) return s.slot_of[root];
    Slot slot{SlotKind::kInput, root, -1};
    if (b_.values[root].constant) {
      slot.kind = SlotKind::kConstant;
    } else if (!is_device_data(root)) {
      slot.kind = SlotKind::kHost;
    } else if (made_in_[root] == here) {
      slot.kind = last_root_use_[root] > here ? SlotKind::kOutput : SlotKind::kInternal;
      slot.node = node;
    }
    s.slot_of[root] = static_cast<uint32_t>(s.slots.size());
    s.slots.push_back(slot);
    return s.slot_of[root];
  }

  LevelBuilder& b_;
  std::vector<int> ready_, depths_;
  std::vector<bool> from_control_;
  std::vector<int> made_in_, last_use_, last_root_use_;
  std::vector<Segment> segments_;
};

}  // namespace

std::vector<Segment> cut_segments(LevelBuilder& b) { return Cutter(b).run(); }

}  // namespace asc
