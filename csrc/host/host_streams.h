// Which stream each task of a segment goes to where it is launched node by node. What depends on what is the same for
// every shape, so the order is chosen from the costs that runs before had; all tasks of a run begin after and end
// before something on the first stream (StreamOrder). Guarded by the executable's lock; within a run, everything but
// choose belongs to the thread of the launch stage.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "schedule/resolver.h"
#include "schedule/run_context.h"
#include "schedule/schedule.h"

namespace asc {

class HostStreams {
 public:
  HostStreams(const Resolver& resolver, size_t segment, const StreamSettings& settings);

  // --- between runs --------------------------------------------------------------------------------------------
  // Whether a run may use several streams, once an order does: where it executes on the calling thread, only when they
  // were asked for, since nobody can tell what a second thread will get of the CPUs.
  bool may_serve(const RunContext& run) const {
    return has_branches_ && (settings_.limits.is_forced || !run.is_inline);
  }
  // After a run of all tasks: chooses the order anew, from what was resolved last, after the 1st, 2nd, 4th… and each
  // 64th run. `pace_ns`: between two launches of the host, who limits what
  // streams can gain. True: the order has changed.
  bool choose(double pace_ns);
  // Null: one stream.
  std::shared_ptr<const StreamOrder> order() const;
  uint32_t streams() const { return present_ ? present_->choice.order.streams : 1; }
  std::string text() const;
  // Of the task of node `n`; -1 where there is one stream, or no task.
  int stream_of(uint32_t n) const;

  // --- one run of several streams ------------------------------------------------------------------------------
  void begin(RunContext& run);
  // Appends what comes before the task of node `n`, and returns its stream. Nodes come in order. Throws DeviceError.
  Stream& prepare(uint32_t n);
  // Makes the first stream wait for the others. Not `is_complete`: after an error, of streams too.
  void end(bool is_complete) noexcept;

 private:
  struct Order {
    Order(StreamChoice chosen, const std::vector<StreamTask>& tasks);
    StreamChoice choice;
    std::vector<bool> is_alone;       // by task: nothing runs beside it
    std::unique_ptr<Point[]> points;  // those of the order, then one of each stream to end a run with
  };

  void append(const StreamOrder::Step& step);
  void join();
  void give_up(const char* what) noexcept;

  const Resolver& resolver_;
  const size_t index_;
  const StreamSettings& settings_;
  std::vector<uint32_t> task_of_;  // by node
  bool has_branches_ = false;      // some task does not need the one before it
  std::shared_ptr<Order> present_;
  std::string why_one_;  // where there is no order
  uint32_t runs_ = 0, next_choice_ = 1;
  // Of the run at hand.
  RunContext* run_ = nullptr;
  uint32_t round_ = 0;
  size_t next_step_ = 0;
  bool is_joined_ = false;  // the rest goes to the first stream
};

}  // namespace asc
