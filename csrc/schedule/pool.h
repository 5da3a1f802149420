// Caching allocator for host mode and for values that outlive a segment: size classes over device memory. A block that
// is released may be handed out at once: its readers are ordered before whoever gets it next. Between segments and
// between runs everything is, since a segment begins and ends on the first stream, and waits there for the others.
// While a segment is launched, blocks are released only by slots that it has not used yet (Placements), hence by runs
// before; which slots of a segment share a block is up to the events between its streams. Guarded by the executable's
// lock.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/device.h"
#include "device/streams.h"

namespace asc {

struct Block {
  void* data = nullptr;
  size_t bytes = 0;  // of the size class
  size_t asked = 0;
};

class Pool {
 public:
  // Somebody who keeps blocks that he could do without.
  class Holder {
   public:
    virtual ~Holder() = default;
    // Returns when every task whose memory has been placed so far is launched.
    virtual void settle() {}
    // Releases what is not in use. Everything launched so far has completed.
    virtual void give_up() {}
  };

  Pool(Device& device, const Streams& streams)
      : device_(device), streams_(streams), computes_(device.info().computes) {}
  ~Pool() { trim(); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // At least `bytes`. On exhaustion: makes room, tries again, then throws OutOfMemoryError.
  Block allocate(size_t bytes);
  // The same for what a caller or the host may read, cleared where the device computes nothing: its results are the
  // same each time, and nobody's old memory.
  Block allocate_result(size_t bytes);
  // Waits for the streams, asks holders to give up what they can, and trims.
  void make_room();
  void release(Block block);
  // Gives cached blocks back to the device. Nothing that uses them may be in flight.
  void trim();
  void add_holder(Holder* holder) { holders_.push_back(holder); }
  void remove_holder(Holder* holder) { holders_.erase(std::find(holders_.begin(), holders_.end(), holder)); }

  size_t cached_bytes() const { return cached_bytes_; }
  size_t used_bytes() const { return used_bytes_; }
  size_t rounding_bytes() const { return used_bytes_ - asked_bytes_; }  // of the used ones, lost to size classes
  size_t used_blocks() const { return used_blocks_; }                   // handed out and not released
  uint64_t allocations() const { return allocations_; }                 // calls of allocate
  uint64_t retries() const { return retries_; }                         // of them, those that met exhaustion

 private:
  // Four classes per power of two: at most 25 % of a block is lost to rounding.
  static constexpr int kClasses = 4 * 60;
  static int class_of(size_t bytes);
  static size_t class_bytes(int index);

  Device& device_;
  const Streams& streams_;
  const bool computes_;  // the device
  std::array<std::vector<void*>, kClasses> free_;
  std::vector<Holder*> holders_;
  size_t cached_bytes_ = 0, used_bytes_ = 0, asked_bytes_ = 0, used_blocks_ = 0;
  uint64_t allocations_ = 0, retries_ = 0;
};

}  // namespace asc
