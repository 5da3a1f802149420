// The slab for the internal values of schedules. Schedules of one executable share it: they run in order on one stream.
// Guarded by the executable's lock.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "schedule/pool.h"

namespace asc {

class Arena final : public Pool::Holder {
 public:
  // Device memory that runs in flight keep alive when the arena has moved on to a larger slab.
  class Slab {
   public:
    Slab(Device& device, size_t bytes) : device_(device), base_(device.allocate(bytes)), bytes_(bytes) {}
    ~Slab() { release(); }
    Slab(const Slab&) = delete;
    Slab& operator=(const Slab&) = delete;
    std::byte* base() const { return static_cast<std::byte*>(base_); }
    size_t bytes() const { return bytes_; }
    // Gives the memory back early; nothing that uses it may be in flight.
    void release() {
      if (base_) device_.release(base_, bytes_);
      base_ = nullptr;
    }

   private:
    Device& device_;
    void* base_;
    const size_t bytes_;
  };

  Arena(Device& device, Pool& pool) : device_(device), pool_(pool) { pool_.add_holder(this); }
  ~Arena() override { pool_.remove_holder(this); }

  // A slab of at least `bytes`; null for 0. Grows by half or more, so that growing shapes move it rarely. On
  // exhaustion: makes room in the pool, frees all slabs, tries again, then throws OutOfMemoryError. It stays until the
  // pool allocates the next time.
  const std::shared_ptr<Slab>& reserve(size_t bytes);
  size_t bytes() const { return slab_ ? slab_->bytes() : 0; }

  // Gives up all slabs.
  void give_up() override;

 private:
  void grow(size_t bytes);

  Device& device_;
  Pool& pool_;
  std::shared_ptr<Slab> slab_;
  std::vector<std::weak_ptr<Slab>> former_;
};

}  // namespace asc
