#include "schedule/arena.h"

#include <algorithm>

namespace asc {

const std::shared_ptr<Arena::Slab>& Arena::reserve(size_t bytes) {
  if (bytes > this->bytes()) grow(bytes);
  return slab_;
}

void Arena::grow(size_t bytes) {
  const size_t generous = std::max(bytes, round_up(this->bytes() + this->bytes() / 2));
  former_.erase(std::remove_if(former_.begin(), former_.end(), [](const auto& s) { return s.expired(); }),
                former_.end());
  if (slab_) former_.push_back(slab_);
  try {
    slab_ = std::make_shared<Slab>(device_, generous);
  } catch (const OutOfMemoryError&) {
    pool_.make_room();
    slab_ = std::make_shared<Slab>(device_, bytes);
  }
}

void Arena::give_up() {
  if (slab_) former_.push_back(slab_);
  for (const std::weak_ptr<Slab>& s : former_)
    if (std::shared_ptr<Slab> alive = s.lock()) alive->release();
  former_.clear();
  slab_ = nullptr;
}

}  // namespace asc
