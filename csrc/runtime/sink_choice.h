// When mode auto makes the schedule of a segment's signature: a function of what signatures did so far. Guarded by the
// executable's lock.
#pragma once

#include <algorithm>

#include "schedule/keyed_cache.h"

namespace asc {

// Signatures are met for the first time node by node, and kept when they come back. Where they mostly come back, a new
// one is kept at once: if it comes back with a chance p, that costs a price with 1 - p and saves a run node by node
// with p. A signature whose schedule was dropped for lack of room has to earn its price anew, four times as much each
// time, so that a working set beyond the cache costs little more than running node by node.
class SinkChoice {
 public:
  // Before a run of a signature that has no schedule: whether to make it first.
  bool is_due_before(const Key& key);
  // After a run node by node that took so long: whether to make the schedule now.
  bool is_due_after(const Key& key, uint64_t host_ns);
  // What making a schedule took. One that others delayed counts little, and is forgotten.
  void note_price(uint64_t ns) { price_ns_ = price_ns_ ? (3 * price_ns_ + std::min(ns, 2 * price_ns_)) / 4 : ns; }
  // A signature whose schedule was made at its first sighting has come back.
  void note_return() { returned_ += 1; }
  // Whether the signature of the last call was new.
  bool was_first() const { return was_first_; }

 private:
  struct Sighting {
    uint64_t first_ns = 0;   // of the first run, node by node; 0 where there was none
    uint64_t repeat_ns = 0;  // of later ones, since a schedule was made
    uint8_t made = 0;        // schedules
    bool has_returned = false;
  };
  std::shared_ptr<Sighting> note_new(const Key& key);
  void note_seen(Sighting& seen);

  static constexpr size_t kSightingBytes = size_t{1} << 20;  // signatures remembered
  static constexpr double kWindow = 64;                      // of them, that the chance of coming back is taken from
  static constexpr uint8_t kMaxMade = 16;

  KeyedCache<Sighting> sightings_{kSightingBytes};
  double sighted_ = 0, returned_ = 0;
  uint64_t price_ns_ = 0;  // of a schedule
  uint64_t host_ns_ = 0;   // of the last run of a new signature
  bool was_first_ = false;
};

}  // namespace asc
