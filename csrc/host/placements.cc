#include "host/placements.h"

#include <algorithm>

namespace asc {

Placements::Placements(Pool& pool, const Segment& segment)
    : pool_(pool),
      segment_(segment),
      ranges_(segment.slots.size()),
      block_of_(segment.slots.size(), kNone),
      data_(segment.slots.size(), nullptr) {
  for (uint32_t i = 0; i < segment.slots.size(); ++i) {
    const uint32_t node = static_cast<uint32_t>(std::max(segment.slots[i].node, 0));
    ranges_[i] = {node, node};
  }
  for (uint32_t n = 0; n < segment.nodes.size(); ++n)
    for (uint32_t slot : segment.nodes[n].dies_after) ranges_[slot].last = n;
  pool_.add_holder(this);
}

Placements::~Placements() {
  pool_.remove_holder(this);
  for (const Placed& p : blocks_) pool_.release(p.block);
}

void Placements::set_order(std::shared_ptr<const StreamOrder> order) {
  now_ = kIdle;
  give_up();
  order_ = std::move(order);
  uses_ = order_ ? std::make_unique<SlotUses>(segment_, *order_) : nullptr;
  if (!uses_) return;
  buffer_of_.assign(segment_.slots.size(), kNone);
  uint32_t buffers = 0;
  for (uint32_t i = 0; i < segment_.slots.size(); ++i) {
    const Slot& slot = segment_.slots[i];
    if (slot.kind != SlotKind::kInternal && slot.kind != SlotKind::kWorkspace) continue;
    buffer_of_[i] = buffers;
    uses_->add(buffers++, i, static_cast<uint32_t>(slot.node));
  }
}

void* Placements::place(uint32_t slot, size_t bytes) {
  const uint32_t at = block_of_[slot];
  if (at != kNone && bytes <= blocks_[at].block.bytes) return data_[slot];
  move(slot, kNone);
  uint32_t found = find_block(slot, bytes);
  if (found == kNone) found = add_block(pool_.allocate(bytes));
  move(slot, found);
  return data_[slot];
}

bool Placements::are_apart(uint32_t a, uint32_t b) const {
  if (ranges_[b].last < ranges_[a].first) std::swap(a, b);
  return ranges_[a].last < ranges_[b].first && (!uses_ || uses_->is_before(buffer_of_[a], buffer_of_[b]));
}

bool Placements::is_free_for(const Placed& placed, uint32_t slot) const {
  return std::all_of(placed.slots.begin(), placed.slots.end(), [&](uint32_t s) { return are_apart(s, slot); });
}

// The smallest that fits and is not many times too large.
uint32_t Placements::find_block(uint32_t slot, size_t bytes) const {
  uint32_t best = kNone;
  for (uint32_t i = 0; i < blocks_.size(); ++i) {
    const Placed& p = blocks_[i];
    if (!p.block.data || p.block.bytes < bytes || !is_free_for(p, slot)) continue;
    if (best == kNone || p.block.bytes < blocks_[best].block.bytes) best = i;
  }
  return best;
}

uint32_t Placements::add_block(const Block& block) {
  for (uint32_t i = 0; i < blocks_.size(); ++i)
    if (!blocks_[i].block.data) {
      blocks_[i].block = block;
      return i;
    }
  blocks_.push_back({block, {}});
  return static_cast<uint32_t>(blocks_.size() - 1);
}

void Placements::move(uint32_t slot, uint32_t block) {
  const uint32_t from = block_of_[slot];
  if (from == block) return;
  block_of_[slot] = block;
  data_[slot] = block == kNone ? nullptr : blocks_[block].block.data;
  ++version_;
  if (block != kNone) blocks_[block].slots.push_back(slot);
  if (from == kNone) return;
  Placed& left = blocks_[from];
  left.slots.erase(std::find(left.slots.begin(), left.slots.end(), slot));
  if (!left.slots.empty()) return;
  pool_.release(left.block);  // order on the stream protects readers in flight
  left.block = {};
}

void Placements::give_up() {
  ++losses_;
  for (Placed& p : blocks_) {
    if (!p.block.data) continue;
    const bool is_needed = now_ != kIdle && std::any_of(p.slots.begin(), p.slots.end(), [&](uint32_t s) {
                             return ranges_[s].first <= now_ && now_ <= ranges_[s].last;
                           });
    if (is_needed) continue;
    while (!p.slots.empty()) move(p.slots.back(), kNone);
  }
}

}  // namespace asc
