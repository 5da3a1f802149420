// When mode auto makes the schedule of a segment's signature: a function of what signatures did so far. Guarded by the
// executable's lock.
#pragma once

#include <algorithm>

#include "schedule/keyed_cache.h"

namespace asc {

// Signatures are met for the first time node by node, and kept when they come back; the first of all after its run
// already, which tells the price. Where they may well come back, a new one is kept at once: if it comes back with a
// chance p, that costs making a schedule of what is resolved with 1 - p, and saves resolving it a second time with p;
// and what that cost in vain stays below a fiftieth of all time spent node by node. A signature whose schedule was
// dropped for lack of room has to earn its price anew, four times as much each time, so that a working set beyond the
// cache costs little more than running node by node.
class SinkChoice {
 public:
  // Before a run of a signature that has no schedule: whether to make it first.
  bool is_due_before(const Key& key);
  // After a run node by node that took so long: whether to make the schedule now.
  bool is_due_after(const Key& key, uint64_t host_ns);
  // After the first run of all: whether to make the schedule of its signature, to learn the price; true once.
  bool learns_price(const Key& key);
  // What making the schedule took of the signature that was asked about last: resolving, and the rest.
  void note_price(uint64_t resolve_ns, uint64_t make_ns);
  // A signature whose schedule was made at its first sighting has come back.
  void note_return();
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
  double resolve_gain_ns() const;  // that keeping a new signature at once saves if it comes back

  static constexpr size_t kSightingBytes = size_t{1} << 20;  // signatures remembered
  static constexpr double kWindow = 32;                      // of them, that the chance of coming back is taken from
  static constexpr uint8_t kMaxMade = 16;
  static constexpr double kMostInVain = 0.02;  // of the time spent node by node
  static constexpr double kUsualResolve = 3;   // times what making takes, where nothing is known

  KeyedCache<Sighting> sightings_{kSightingBytes};
  double sighted_ = 0, returned_ = 0;
  uint64_t price_ns_ = 0;    // of a schedule, and of that
  uint64_t make_ns_ = 0;     // what is not resolving,
  uint64_t resolve_ns_ = 0;  // resolving where the signature was new; 0: there was none
  double vain_ns_ = 0;       // spent on new signatures that have not come back
  double total_ns_ = 0;      // of all runs node by node
  bool was_first_ = false;
  bool is_learning_ = false;  // whether the price is that of the first signature, if any
};

}  // namespace asc
