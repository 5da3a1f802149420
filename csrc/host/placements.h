// Where the slots of a segment live in host mode. A slot keeps its block from run to run, so that a run whose sizes fit
// touches no allocator; blocks have room to grow (size classes), so that near shapes fit. Two slots share a block when
// their lifetimes, which are positions in the segment and the same for every shape, do not meet and, on several
// streams, all tasks of one have ended before the other's first. Successive runs share all blocks: one run's tasks end
// before the next one's begin. Guarded by the executable's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plan/plan.h"
#include "schedule/pool.h"
#include "schedule/slot_uses.h"

namespace asc {

class Placements final : public Pool::Holder {
 public:
  Placements(Pool& pool, const Segment& segment);
  ~Placements() override;

  // Between runs: what runs come now may go by this order; null: by one stream only. Slots lose their memory.
  void set_order(std::shared_ptr<const StreamOrder> order);

  // The node whose slots and results are placed next: what it and later ones read is in use.
  void begin_node(uint32_t now) { now_ = now; }
  // Memory of at least `bytes` for an internal or workspace slot of that node. Throws OutOfMemoryError.
  void* place(uint32_t slot, size_t bytes);
  // Memory of somebody else's for a slot: packed constants.
  void put(uint32_t slot, void* data) {
    version_ += data_[slot] != data;
    data_[slot] = data;
  }
  // Bytes of the slot's block; 0 where it has none.
  size_t bytes(uint32_t slot) const { return block_of_[slot] == kNone ? 0 : blocks_[block_of_[slot]].block.bytes; }
  // By slot; null where nothing is placed.
  const std::vector<void*>& data() const { return data_; }

  // Changes whenever data() does.
  uint64_t version() const { return version_; }
  // Number of times that slots lost their memory, or it may not fit any more, other than by place.
  uint64_t losses() const { return losses_; }
  // What the slots need may have changed without place: each is to be placed again.
  void doubt() { ++losses_; }
  // From here on no slot is in use: nothing of this segment is being launched.
  void end_run() { now_ = kIdle; }

  // Gives up blocks that no slot needs at the present node.
  void give_up() override;

 private:
  struct Range {
    uint32_t first = 0, last = 0;  // nodes, both included
  };
  struct Placed {
    Block block;
    std::vector<uint32_t> slots;
  };
  static constexpr uint32_t kNone = ~uint32_t{0}, kIdle = ~uint32_t{0};

  bool are_apart(uint32_t a, uint32_t b) const;
  bool is_free_for(const Placed& placed, uint32_t slot) const;
  uint32_t find_block(uint32_t slot, size_t bytes) const;
  uint32_t add_block(const Block& block);
  void move(uint32_t slot, uint32_t block);

  Pool& pool_;
  const Segment& segment_;
  std::shared_ptr<const StreamOrder> order_;
  std::unique_ptr<SlotUses> uses_;   // of buffers that hold one slot each; null: one stream
  std::vector<uint32_t> buffer_of_;  // by slot, with uses_ only
  std::vector<Range> ranges_;        // by slot
  std::vector<uint32_t> block_of_;   // by slot
  std::vector<void*> data_;          // by slot
  std::vector<Placed> blocks_;       // released ones keep their place, with null data
  uint64_t version_ = 1, losses_ = 0;
  uint32_t now_ = kIdle;
};

}  // namespace asc
