#include "schedule/memory_sections.h"

#include <algorithm>
#include <numeric>

namespace asc {
namespace {

struct Event {
  int64_t time;
  bool is_start;
};

// The ends of sections: each first end after a start.
std::vector<int64_t> section_ends(const MemoryProblem& problem, const std::vector<uint32_t>& buffers) {
  std::vector<Event> events;
  for (uint32_t i : buffers) {
    events.push_back({problem.buffers[i].lower, true});
    events.push_back({problem.buffers[i].upper, false});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.time != b.time ? a.time < b.time : a.is_start < b.is_start;
  });
  std::vector<int64_t> ends;
  for (size_t i = 1; i < events.size(); ++i)
    if (!events[i].is_start && events[i - 1].is_start) ends.push_back(events[i].time);
  return ends;
}

}  // namespace

Sections make_sections(const MemoryProblem& problem) {
  Sections sections;
  int64_t unit = 0;
  for (uint32_t i = 0; i < problem.buffers.size(); ++i) {
    if (!problem.buffers[i].bytes) continue;
    sections.buffer_of.push_back(i);
    unit = std::gcd(unit, aligned_bytes(problem, i));
  }
  sections.unit = std::max<int64_t>(unit, 1);
  const std::vector<int64_t> ends = section_ends(problem, sections.buffer_of);
  sections.count = static_cast<int32_t>(ends.size());
  std::stable_sort(sections.buffer_of.begin(), sections.buffer_of.end(),
                   [&](uint32_t a, uint32_t b) { return problem.buffers[a].lower < problem.buffers[b].lower; });
  for (uint32_t i : sections.buffer_of) {
    const MemoryBuffer& b = problem.buffers[i];
    const auto lo = std::upper_bound(ends.begin(), ends.end(), b.lower) - ends.begin();
    const auto hi = std::upper_bound(ends.begin(), ends.end(), b.upper) - ends.begin();
    sections.blocks.push_back(
        {static_cast<int32_t>(lo), static_cast<int32_t>(hi), aligned_bytes(problem, i) / sections.unit});
  }
  return sections;
}

Sections mirrored(const Sections& sections) {
  std::vector<uint32_t> order(sections.blocks.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return sections.blocks[a].hi > sections.blocks[b].hi; });
  Sections mirror;
  mirror.count = sections.count;
  mirror.unit = sections.unit;
  for (uint32_t x : order) {
    const SearchedBlock& b = sections.blocks[x];
    mirror.buffer_of.push_back(sections.buffer_of[x]);
    mirror.blocks.push_back({sections.count - b.hi, sections.count - b.lo, b.bytes});
  }
  return mirror;
}

std::vector<int64_t> dropped_offsets(const Sections& sections, const std::vector<int64_t>& offsets, size_t buffers) {
  std::vector<uint32_t> order(sections.blocks.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return offsets[a] < offsets[b]; });
  std::vector<int64_t> skyline(static_cast<size_t>(sections.count), 0), dropped(buffers, 0);
  for (uint32_t x : order) {
    const auto lo = skyline.begin() + sections.blocks[x].lo, hi = skyline.begin() + sections.blocks[x].hi;
    const int64_t at = *std::max_element(lo, hi);
    dropped[sections.buffer_of[x]] = at;
    std::fill(lo, hi, at + sections.blocks[x].bytes * sections.unit);
  }
  return dropped;
}

}  // namespace asc
