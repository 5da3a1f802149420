// Which stream runs each task of a schedule, and where streams wait for one another.
#pragma once

#include <cstdint>
#include <vector>

namespace asc {

// All streams begin after the first one and end before it: it records the start, and waits for the others at the end.
// So whatever else is on the first stream, a run before or after, is ordered with every task here.
struct StreamOrder {
  struct Step {
    enum class Kind : uint8_t { kTask, kRecord, kWait };
    Kind kind;
    uint32_t stream;
    uint32_t index;  // of the task or the point
  };

  uint32_t streams = 1;
  uint32_t points = 0;
  // With several streams only:
  std::vector<Step> steps;  // of all of them; a record comes before its waits, so one thread may launch in order
  std::vector<uint32_t> stream_of;  // by task
  std::vector<uint32_t> place_of;   // by task: the how-manieth entry of its stream, from 1
  std::vector<uint32_t> clocks;     // by task, stream: entries of that stream that have ended when it ends

  bool is_single() const { return streams == 1; }
  // Whether `a` has ended when `b` begins, in whatever order streams go on. The two differ.
  bool is_before(uint32_t a, uint32_t b) const {
    return is_single() ? a < b : clocks[size_t{b} * streams + stream_of[a]] >= place_of[a];
  }
};

}  // namespace asc
