// A memory of bounded size by 64-bit hash: where there is no room, what was used longest ago of a few candidates goes.
// Hashes stand for what was hashed, never compared in full: only for guesses, which may be wrong anyway.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace asc {

template <typename T>
class RecentTable {
 public:
  // `slots`: a power of two.
  explicit RecentTable(size_t slots) : slots_(slots) {}

  // Null where it is not, or no longer, remembered.
  T* find(uint64_t hash) {
    for (size_t i = 0; i < kWays; ++i) {
      Slot& slot = at(hash, i);
      if (slot.used && slot.hash == hash) return &slot.value;
    }
    return nullptr;
  }
  // The value of `hash`; a new one, T{}, where it is not remembered.
  T& use(uint64_t hash) {
    Slot* oldest = &at(hash, 0);
    for (size_t i = 0; i < kWays; ++i) {
      Slot& slot = at(hash, i);
      if (slot.used && slot.hash == hash) {
        slot.used = ++clock_;
        return slot.value;
      }
      if (slot.used < oldest->used) oldest = &slot;
    }
    *oldest = {hash, ++clock_, T{}};
    return oldest->value;
  }

 private:
  struct Slot {
    uint64_t hash = 0;
    uint64_t used = 0;  // 0: empty
    T value{};
  };
  static constexpr size_t kWays = 4;

  Slot& at(uint64_t hash, size_t way) { return slots_[(hash + way) & (slots_.size() - 1)]; }

  std::vector<Slot> slots_;
  uint64_t clock_ = 0;
};

}  // namespace asc
