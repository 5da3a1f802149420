// The streams of one executable: the first, and further ones for independent branches, made when they are needed.
// Guarded by the executable's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "device/device.h"

namespace asc {

// What runs on further streams begins after and ends before something on the first (StreamOrder), so that order, idle
// tests and waits on the first speak for all of them.
class Streams {
 public:
  explicit Streams(Device& device) : device_(device) {
    ensure(1);
    first_ = streams_.front().get();
  }

  Stream& first() const { return *first_; }
  Stream& operator[](uint32_t number) const { return *streams_[number]; }
  uint32_t count() const { return static_cast<uint32_t>(streams_.size()); }
  // Clock ticks that launches have spent waiting for room.
  uint64_t blocked_ticks() const {
    uint64_t sum = 0;
    for (const auto& stream : streams_) sum += stream->blocked_ticks();
    return sum;
  }
  // Makes what is missing up to `count`.
  void ensure(uint32_t count) {
    while (streams_.size() < count) streams_.push_back(device_.create_stream(this->count()));
  }

 private:
  Device& device_;
  std::vector<std::unique_ptr<Stream>> streams_;
  Stream* first_ = nullptr;
};

}  // namespace asc
