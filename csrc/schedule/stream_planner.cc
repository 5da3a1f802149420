#include "schedule/stream_planner.h"

#include <algorithm>
#include <cstdio>
#include <functional>

namespace asc {
namespace {

using Tasks = std::vector<StreamTask>;
using Kind = StreamOrder::Step::Kind;

constexpr uint32_t kStart = ~uint32_t{0};  // in place of a task: the beginning of the run
constexpr uint32_t kNoPoint = ~uint32_t{0};

std::string us(double ns) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f us", ns * 1e-3);
  return text;
}

// A task that runs alone comes after everything before it in the list, and before everything behind it.
Tasks with_alone_as_dependencies(Tasks tasks) {
  uint32_t alone = kStart, next = 0;  // the last such task, and the first after it
  for (uint32_t i = 0; i < tasks.size(); ++i) {
    if (alone != kStart) tasks[i].after.push_back(alone);
    if (!tasks[i].is_alone) continue;
    for (; next < i; ++next) tasks[i].after.push_back(next);
    alone = i;
    next = i + 1;
  }
  return tasks;
}

struct Assignment {
  std::vector<uint32_t> stream_of;
  double ns = 0;
};

// Each task in turn goes where it can begin first.
class Assigner {
 public:
  Assigner(const Tasks& tasks, uint32_t streams, const StreamCosts& costs)
      : tasks_(tasks), costs_(costs), free_(streams, 0), is_used_(streams, false), end_(tasks.size(), 0) {
    is_used_[0] = true;
  }

  Assignment assign() {
    for (uint32_t i = 0; i < tasks_.size(); ++i) {
      uint32_t best = 0;
      double best_ns = start_on(0, i);
      for (uint32_t s = 1; s < free_.size() && !tasks_[i].is_alone; ++s)
        if (const double ns = start_on(s, i); ns < best_ns) {
          best = s;
          best_ns = ns;
        }
      if (best != 0 && joins_streams(i) && start_on(0, i) <= best_ns + costs_.hand_over_ns) {
        best = 0;  // spares the wait at the end
        best_ns = start_on(0, i);
      }
      result_.stream_of.push_back(best);
      is_used_[best] = true;
      free_[best] = end_[i] = best_ns + tasks_[i].ns;
    }
    result_.ns = free_[0];
    for (uint32_t s = 1; s < free_.size(); ++s)
      if (is_used_[s]) result_.ns = std::max(result_.ns, after_wait(free_[s] + costs_.hand_over_ns, free_[0]));
    return std::move(result_);
  }

 private:
  double start_on(uint32_t s, uint32_t task) const {
    double own = free_[s], other = is_used_[s] ? 0 : costs_.hand_over_ns + costs_.wake_ns;
    for (uint32_t before : tasks_[task].after)
      if (result_.stream_of[before] != s) other = std::max(other, end_[before] + costs_.hand_over_ns);
    const double begin = other > own ? after_wait(other, own) : own;
    return std::max(begin, costs_.pace_ns * (task + 1));
  }
  bool joins_streams(uint32_t task) const {
    const std::vector<uint32_t>& after = tasks_[task].after;
    return std::any_of(after.begin(), after.end(),
                       [&](uint32_t b) { return result_.stream_of[b] != result_.stream_of[after[0]]; });
  }
  double after_wait(double ready, double since) const {
    return ready - since > costs_.spin_ns ? ready + costs_.wake_ns : ready;
  }

  const Tasks& tasks_;
  const StreamCosts& costs_;
  std::vector<double> free_;  // by stream: the end of its last task
  std::vector<bool> is_used_;
  std::vector<double> end_;  // by task
  Assignment result_;
};

// Finds the waits, then lists the steps. A wait is left out where the stream, or what it has waited for before, implies
// it; later tasks are looked at first, since they can imply earlier ones and never the reverse. What remains are the
// edges between streams of the transitive reduction, so none can be spared.
class Orderer {
 public:
  Orderer(const Tasks& tasks, const std::vector<uint32_t>& stream_of, uint32_t streams)
      : tasks_(tasks), count_(streams, 0), now_(streams, std::vector<uint32_t>(streams, 0)), waits_(tasks.size()) {
    order_.streams = streams;
    order_.stream_of = stream_of;
    order_.place_of.resize(tasks.size());
    order_.clocks.resize(tasks.size() * streams);
    count_[0] = now_[0][0] = 1;  // the start is an entry of the first stream
  }

  StreamOrder order() {
    for (uint32_t i = 0; i < tasks_.size(); ++i) add(i);
    std::vector<uint32_t> last;
    for (uint32_t s = 1; s < order_.streams; ++s)
      if (count_[s]) last.push_back(last_on(s));
    const std::vector<uint32_t> at_end = find_waits(0, std::move(last));
    number_points(at_end);
    list_steps(at_end);
    return std::move(order_);
  }

 private:
  void add(uint32_t task) {
    const uint32_t s = order_.stream_of[task];
    waits_[task] = find_waits(s, tasks_[task].after);
    now_[s][0] = std::max(now_[s][0], 1u);
    order_.place_of[task] = now_[s][s] = ++count_[s];
    std::copy(now_[s].begin(), now_[s].end(), &order_.clocks[size_t{task} * order_.streams]);
  }

  // The tasks, or the start, that stream `s` has to wait for so that all of `before` have ended. Takes them as waited
  // for.
  std::vector<uint32_t> find_waits(uint32_t s, std::vector<uint32_t> before) {
    std::sort(before.begin(), before.end(), std::greater<>());
    std::vector<uint32_t> waits;
    std::vector<uint32_t>& clock = now_[s];
    for (uint32_t b : before) {
      if (clock[order_.stream_of[b]] >= order_.place_of[b]) continue;
      waits.push_back(b);
      for (uint32_t t = 0; t < order_.streams; ++t)
        clock[t] = std::max(clock[t], order_.clocks[size_t{b} * order_.streams + t]);
    }
    if (clock[0] == 0) waits.push_back(kStart);
    return waits;
  }

  uint32_t last_on(uint32_t s) const {
    uint32_t task = static_cast<uint32_t>(tasks_.size());
    while (order_.stream_of[--task] != s) continue;
    return task;
  }

  void number_points(const std::vector<uint32_t>& at_end) {
    point_of_.assign(tasks_.size() + 1, kNoPoint);  // the last one is that of the start
    const auto number = [&](const std::vector<uint32_t>& waits) {
      for (uint32_t w : waits)
        if (uint32_t& point = point_of(w); point == kNoPoint) point = order_.points++;
    };
    for (const std::vector<uint32_t>& waits : waits_) number(waits);
    number(at_end);
  }
  uint32_t& point_of(uint32_t task) { return point_of_[task == kStart ? tasks_.size() : task]; }

  void list_steps(const std::vector<uint32_t>& at_end) {
    if (point_of(kStart) != kNoPoint) order_.steps.push_back({Kind::kRecord, 0, point_of(kStart)});
    for (uint32_t i = 0; i < tasks_.size(); ++i) {
      const uint32_t s = order_.stream_of[i];
      for (uint32_t w : waits_[i]) order_.steps.push_back({Kind::kWait, s, point_of(w)});
      order_.steps.push_back({Kind::kTask, s, i});
      if (point_of(i) != kNoPoint) order_.steps.push_back({Kind::kRecord, s, point_of(i)});
    }
    for (uint32_t w : at_end) order_.steps.push_back({Kind::kWait, 0, point_of(w)});
  }

  const Tasks& tasks_;
  StreamOrder order_;
  std::vector<uint32_t> count_;               // by stream: its entries so far
  std::vector<std::vector<uint32_t>> now_;    // by stream: entries of each that have ended for what it runs next
  std::vector<std::vector<uint32_t>> waits_;  // by task
  std::vector<uint32_t> point_of_;
};

StreamChoice one_stream(double ns, std::string why) {
  StreamChoice choice;
  choice.one_ns = choice.predicted_ns = ns;
  choice.text = "one stream: " + std::move(why);
  return choice;
}

std::string describe(const StreamChoice& choice, const std::vector<uint32_t>& stream_of, bool is_forced) {
  std::string text = std::to_string(choice.order.streams) + " streams" + (is_forced ? " (asked for)" : "") +
                     ": estimated " + us(choice.predicted_ns) + ", one stream " + us(choice.one_ns) + "; tasks ";
  for (uint32_t s = 0; s < choice.order.streams; ++s)
    text += (s ? " + " : "") + std::to_string(std::count(stream_of.begin(), stream_of.end(), s));
  return text + ", " + std::to_string(choice.order.points) + " events, " + std::to_string(choice.waits) + " waits";
}

}  // namespace

StreamOrder order_streams(const Tasks& tasks, const std::vector<uint32_t>& stream_of, uint32_t streams) {
  return Orderer(tasks, stream_of, streams).order();
}

StreamChoice choose_streams(const Tasks& given, const StreamLimits& limits) {
  double one_ns = 0, launched_ns = 0;
  for (const StreamTask& t : given) {
    launched_ns += limits.costs.pace_ns;
    one_ns = std::max(one_ns, launched_ns) + t.ns;
  }
  if (limits.most < 2) return one_stream(one_ns, limits.why_one);
  if (given.size() < 2) return one_stream(one_ns, "no two tasks");
  if (given.size() > kMaxStreamTasks)
    return one_stream(one_ns, std::to_string(given.size()) + " tasks; several streams are for " +
                                  std::to_string(kMaxStreamTasks) + " at most");
  Tasks tasks = with_alone_as_dependencies(given);
  StreamCosts costs = limits.costs;
  if (limits.is_forced) {
    costs = {0, 0, 0, 0};
    for (StreamTask& t : tasks) t.ns = std::max(t.ns, 1.0);
  }
  Assignment best;
  uint32_t streams = 1;
  for (uint32_t k = 2; k <= limits.most; ++k) {
    Assignment next = Assigner(tasks, k, costs).assign();
    if (!best.stream_of.empty() && next.ns >= best.ns) continue;
    best = std::move(next);
    streams = tasks.empty() ? 1 : 1 + *std::max_element(best.stream_of.begin(), best.stream_of.end());
  }
  if (streams == 1)
    return one_stream(one_ns, limits.is_forced
                                  ? "no task is independent of the others"
                                  : "no branch of the " + us(one_ns) + " is worth a hand-over of " +
                                        us(costs.hand_over_ns) + ", or " + us(costs.hand_over_ns + costs.wake_ns) +
                                        " to a stream that sleeps");
  if (!limits.is_forced && best.ns > kStreamGain * one_ns)
    return one_stream(one_ns, std::to_string(streams) + " would take " + us(best.ns) + ", one takes " + us(one_ns) +
                                  "; they are used from " + us(kStreamGain * one_ns) + " on");
  StreamChoice choice;
  choice.order = order_streams(tasks, best.stream_of, streams);
  choice.one_ns = one_ns;
  choice.predicted_ns = best.ns;
  choice.is_forced = limits.is_forced;
  for (const StreamOrder::Step& step : choice.order.steps) choice.waits += step.kind == Kind::kWait;
  choice.text = describe(choice, best.stream_of, limits.is_forced);
  return choice;
}

}  // namespace asc
