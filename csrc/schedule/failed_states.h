// States that a search has proved hopeless: a table of fixed size in which a new state replaces an old one.
#pragma once

#include <cstdint>
#include <vector>

namespace asc {

// 128 bits identify a state: two different ones are taken for equal with a chance of 2^-88 after 2^40 look-ups.
struct StateKey {
  uint64_t low = 0, high = 0;
};

class FailedStates {
 public:
  FailedStates() : keys_(size_t{1} << kStartBits) {}

  bool contains(StateKey key) const {
    const StateKey& k = keys_[key.low & (keys_.size() - 1)];
    return k.low == key.low && k.high == key.high;
  }
  void add(StateKey key) {
    if (++count_ > keys_.size() && keys_.size() < size_t{1} << kMaxBits) grow();
    keys_[key.low & (keys_.size() - 1)] = key;
  }

 private:
  static constexpr int kStartBits = 12, kMaxBits = 20;  // 64 KiB to 16 MiB

  void grow() {
    std::vector<StateKey> old(keys_.size() * 4);
    old.swap(keys_);
    for (const StateKey& k : old) keys_[k.low & (keys_.size() - 1)] = k;
  }

  std::vector<StateKey> keys_;
  uint64_t count_ = 0;
};

}  // namespace asc
