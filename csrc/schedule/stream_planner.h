// Puts independent branches on several streams where an estimate says that it pays: a pure function of tasks, their
// dependencies and costs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/stream_order.h"

namespace asc {

struct StreamTask {
  std::vector<uint32_t> after;  // tasks that it needs; all come earlier in the list
  double ns = 0;                // estimated
  bool is_alone = false;        // takes all CPUs itself: nothing runs beside it, and it stays on the first stream
};

struct StreamCosts {
  double hand_over_ns = 1000;  // from a task's end to the start of one that waits for it on another stream
  double spin_ns = 0;          // an executor that has waited for so long has parked
  double wake_ns = 0;          // and takes so much longer then
  double pace_ns = 0;          // the host launches a task every so often; 0: all at once
};

struct StreamLimits {
  uint32_t most = 1;       // streams
  bool is_forced = false;  // use them for every independent branch, whether it pays or not
  std::string why_one;     // where `most` is 1
  StreamCosts costs;
};

struct StreamChoice {
  StreamOrder order;
  double one_ns = 0, predicted_ns = 0;  // of the tasks on one stream, and as chosen
  uint32_t waits = 0;                   // of streams for one another, the last ones included
  bool is_forced = false;
  std::string text;  // the choice and its reason, for people
};

// Several streams have to take this part of the time, at most, that one takes.
constexpr double kStreamGain = 0.85;
// Longer schedules stay on one stream: conflicts in memory grow with the square.
constexpr size_t kMaxStreamTasks = 2000;

StreamChoice choose_streams(const std::vector<StreamTask>& tasks, const StreamLimits& limits);

// The order of tasks that are assigned to streams [0, streams), with the fewest waits that keep all dependencies.
StreamOrder order_streams(const std::vector<StreamTask>& tasks, const std::vector<uint32_t>& stream_of,
                          uint32_t streams);

}  // namespace asc
