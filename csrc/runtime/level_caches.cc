// What a level and its bodies keep: bounds, counters, forecasts.
#include "runtime/level.h"

namespace asc {

CacheCounters Level::schedule_counters() const {
  CacheCounters sum;
  auto add = [&](const CacheCounters& c) {
    sum.hits += c.hits;
    sum.misses += c.misses;
    sum.evictions += c.evictions;
    sum.entries += c.entries;
    sum.bytes += c.bytes;
    sum.spared += c.spared;
    sum.refused += c.refused;
  };
  for (const SegmentState& s : segments_) {
    if (s.schedules) add(s.schedules->counters());
    for (const auto& body : s.bodies) add(body->schedule_counters());
  }
  return sum;
}

void Level::resize_schedule_cache(size_t bytes) {
  options_.schedule_cache_bytes = bytes;
  for (SegmentState& s : segments_) {
    if (s.schedules) s.schedules->resize(bytes);
    for (auto& body : s.bodies) body->resize_schedule_cache(bytes);
  }
}

void Level::set_outlook(Outlook* outlook) {
  for (SegmentState& s : segments_) {
    if (s.schedules) s.schedules->set_outlook(outlook);
    for (auto& body : s.bodies) body->set_outlook(outlook);
  }
}

void Level::drop_schedule(size_t n) {
  for (SegmentState& s : segments_) {
    if (s.schedules) s.schedules->drop(n);
    for (auto& body : s.bodies) body->drop_schedule(n);
  }
}

void Level::forget() {
  resolver_.forget();
  for (SegmentState& s : segments_)
    for (auto& body : s.bodies) body->forget();
}

}  // namespace asc
