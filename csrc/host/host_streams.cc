#include "host/host_streams.h"

#include <algorithm>
#include <cstdio>

#include "schedule/task_cost.h"

namespace asc {
namespace {

using Kind = StreamOrder::Step::Kind;

constexpr uint32_t kMostRunsApart = 64;  // between two choices

// Whether some task does not need the one before it: what follows is then no mere chain.
bool has_branches(const Segment& segment) {
  const PlanNode* before = nullptr;
  for (const PlanNode& node : segment.nodes) {
    if (!node.is_task()) continue;
    const auto inputs = static_cast<std::ptrdiff_t>(node.node.inputs.size());
    const auto is_result_of_before = [&](uint32_t operand) {
      const Slot& slot = segment.slots[operand];
      return (slot.kind == SlotKind::kInternal || slot.kind == SlotKind::kOutput) &&
             &segment.nodes[static_cast<size_t>(slot.node)] == before;
    };
    if (before && std::none_of(node.operands.begin(), node.operands.begin() + inputs, is_result_of_before)) return true;
    before = &node;
  }
  return false;
}

}  // namespace

HostStreams::Order::Order(StreamChoice chosen, const std::vector<StreamTask>& tasks)
    : choice(std::move(chosen)),
      is_alone(tasks.size()),
      points(std::make_unique<Point[]>(choice.order.points + choice.order.streams)) {
  for (size_t i = 0; i < tasks.size(); ++i) is_alone[i] = tasks[i].is_alone;
}

HostStreams::HostStreams(const Resolver& resolver, size_t segment, const StreamSettings& settings)
    : resolver_(resolver), index_(segment), settings_(settings) {
  const Segment& s = resolver.plan().segments[segment];
  uint32_t task = 0;
  for (const PlanNode& node : s.nodes) task_of_.push_back(node.is_task() ? task++ : task);
  has_branches_ = settings.limits.most > 1 && task <= kMaxStreamTasks && has_branches(s);
  why_one_ = "one stream: ";
  if (settings.limits.most < 2)
    why_one_ += settings.limits.why_one;
  else if (task > kMaxStreamTasks)
    why_one_ +=
        std::to_string(task) + " tasks; several streams are for " + std::to_string(kMaxStreamTasks) + " at most";
  else
    why_one_ += has_branches_ ? "no run has been measured yet" : "no task is independent of the others";
}

bool HostStreams::choose(double pace_ns) {
  ++runs_;
  if (!has_branches_ || runs_ < next_choice_) return false;
  next_choice_ = runs_ + std::min(runs_, kMostRunsApart);
  const std::vector<StreamTask> tasks = make_stream_tasks(resolver_, index_, settings_.task_ns);
  StreamLimits limits = settings_.limits;
  limits.costs.pace_ns = pace_ns;
  StreamChoice choice = choose_streams(tasks, limits);
  char pace[64];
  std::snprintf(pace, sizeof(pace), ", a launch every %.1f us", pace_ns * 1e-3);
  if (!limits.is_forced) choice.text += pace;
  if (choice.order.is_single()) {
    why_one_ = choice.text;
    return std::exchange(present_, nullptr) != nullptr;
  }
  auto next = std::make_shared<Order>(std::move(choice), tasks);
  const bool is_same = present_ && present_->choice.order.stream_of == next->choice.order.stream_of &&
                       present_->is_alone == next->is_alone;
  if (is_same) {
    present_->choice.text = next->choice.text;
    return false;
  }
  present_ = std::move(next);
  round_ = 0;
  return true;
}

std::shared_ptr<const StreamOrder> HostStreams::order() const {
  return present_ ? std::shared_ptr<const StreamOrder>(present_, &present_->choice.order) : nullptr;
}

std::string HostStreams::text() const { return present_ ? present_->choice.text : why_one_; }

int HostStreams::stream_of(uint32_t n) const {
  const bool is_task = resolver_.plan().segments[index_].nodes[n].is_task();
  return present_ && is_task ? static_cast<int>(present_->choice.order.stream_of[task_of_[n]]) : -1;
}

void HostStreams::begin(RunContext& run) {
  run.holdings->kept.push_back(present_);  // its points
  run_ = &run;
  ++round_;
  next_step_ = 0;
  is_joined_ = false;
}

// A task that needs all CPUs, and did not when the order was made, ends it: the rest of the run is one after the other.
Stream& HostStreams::prepare(uint32_t n) {
  const StreamOrder& order = present_->choice.order;
  const uint32_t task = task_of_[n];
  if (!is_joined_ && !present_->is_alone[task] && resolver_.tiling(index_, n)->threads > 1) join();
  if (is_joined_) return run_->streams->first();
  while (order.steps[next_step_].kind != Kind::kTask) append(order.steps[next_step_++]);
  ++next_step_;
  return (*run_->streams)[order.stream_of[task]];
}

void HostStreams::append(const StreamOrder::Step& step) {
  Stream& stream = (*run_->streams)[step.stream];
  Point& point = present_->points[step.index];
  if (step.kind == Kind::kRecord) {
    stream.record(point, round_, run_->event);
  } else {
    stream.wait(point, round_, run_->event);
    ++run_->counters->stream_waits;
  }
}

// A record comes before its waits, so no stream waits for what is left out.
void HostStreams::join() {
  const StreamOrder& order = present_->choice.order;
  for (uint32_t s = 1; s < order.streams; ++s) {
    append({Kind::kRecord, s, order.points + s});
    append({Kind::kWait, 0, order.points + s});
  }
  is_joined_ = true;
}

void HostStreams::end(bool is_complete) noexcept {
  try {
    const std::vector<StreamOrder::Step>& steps = present_->choice.order.steps;
    if (!is_complete && !is_joined_) join();
    while (!is_joined_ && next_step_ < steps.size()) append(steps[next_step_++]);
  } catch (const std::exception& e) {
    give_up(e.what());
  }
  run_ = nullptr;
}

// A stream takes nothing any more: skips the run's tasks, records all points and waits until the others are through.
void HostStreams::give_up(const char* what) noexcept {
  const StreamOrder& order = present_->choice.order;
  run_->event->fail(Event::kNoNode, Status::kFailed, what);
  for (uint32_t i = 0; i < order.points + order.streams; ++i) present_->points[i].record(round_, 0);
  try {
    for (uint32_t s = 1; s < run_->streams->count(); ++s) (*run_->streams)[s].synchronize();
  } catch (const Error&) {
    // A child process after fork: its streams have no threads.
  }
}

}  // namespace asc
