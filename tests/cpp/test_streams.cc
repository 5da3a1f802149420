// Several streams: who runs what and who waits for whom, points between executors, memory under concurrency.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <vector>

#include "backends/null/device.h"
#include "backends/timed/device.h"
#include "base/error.h"
#include "device/streams.h"
#include "schedule/stream_planner.h"
#include "schedule/stream_race.h"
#include "sync/thread.h"

namespace {

using asc::Event;
using asc::Point;
using asc::Status;
using asc::StreamChoice;
using asc::StreamLimits;
using asc::StreamOrder;
using asc::StreamTask;
using asc::Task;
using asc::Worker;
using Kind = StreamOrder::Step::Kind;
using Tasks = std::vector<StreamTask>;

constexpr int64_t kDeadlineNs = 30'000'000'000;

Tasks random_tasks(std::minstd_rand& random, uint32_t count, uint32_t density) {
  Tasks tasks(count);
  for (uint32_t i = 0; i < count; ++i) {
    tasks[i].ns = 1000 + random() % 50'000;
    for (uint32_t d = 0; i && d < density; ++d)
      if (random() % 2) tasks[i].after.push_back(random() % i);
    tasks[i].is_alone = random() % 25 == 0;
  }
  return tasks;
}

// Two chains of `length` tasks between a first and a last task.
Tasks two_branches(uint32_t length, double ns) {
  Tasks tasks(2 * length + 2);
  for (StreamTask& t : tasks) t.ns = ns;
  for (uint32_t branch = 0; branch < 2; ++branch)
    for (uint32_t i = 0; i < length; ++i) {
      const uint32_t task = 1 + branch * length + i;
      tasks[task].after = {i ? task - 1 : 0};
    }
  tasks.back().after = {length, 2 * length};
  return tasks;
}

// For each task, whether each other one is before it, by walking the steps without the `skipped` one; the last row is
// that of the end of the first stream. The last column says whether the start is before it.
std::vector<std::vector<bool>> closure(const StreamOrder& order, size_t count, size_t skipped = SIZE_MAX) {
  std::vector<bool> none(count + 1, false);
  std::vector<std::vector<bool>> now(order.streams, none), points(order.points, none), rows(count + 1, none);
  now[0][count] = true;
  for (size_t i = 0; i < order.steps.size(); ++i) {
    if (i == skipped) continue;
    const StreamOrder::Step& step = order.steps[i];
    if (step.kind == Kind::kTask) {
      rows[step.index] = now[step.stream];
      now[step.stream][step.index] = true;
    } else if (step.kind == Kind::kRecord) {
      points[step.index] = now[step.stream];
    } else {
      for (size_t t = 0; t <= count; ++t) now[step.stream][t] = now[step.stream][t] || points[step.index][t];
    }
  }
  rows[count] = now[0];
  return rows;
}

bool keeps_all(const Tasks& tasks, const std::vector<std::vector<bool>>& before) {
  for (uint32_t i = 0; i < tasks.size(); ++i) {
    for (uint32_t a : tasks[i].after)
      if (!before[i][a]) return false;
    if (!before[i][tasks.size()] || !before[tasks.size()][i]) return false;
  }
  return true;
}

StreamLimits limits(uint32_t most, bool is_forced = false) {
  StreamLimits l;
  l.most = most;
  l.is_forced = is_forced;
  l.costs = {1000, 60'000, 50'000};
  return l;
}

}  // namespace

TEST_CASE("streams and their waits keep every dependency, and none of the waits can be spared") {
  std::minstd_rand random(7);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    Tasks tasks = random_tasks(random, 1 + random() % 40, 1 + random() % 3);
    for (StreamTask& t : tasks) t.is_alone = false;
    const uint32_t streams = 2 + random() % 3;
    std::vector<uint32_t> stream_of;
    for (size_t i = 0; i < tasks.size(); ++i) stream_of.push_back(random() % streams);
    const StreamOrder order = asc::order_streams(tasks, stream_of, streams);
    const auto before = closure(order, tasks.size());
    REQUIRE(keeps_all(tasks, before));
    for (uint32_t a = 0; a < tasks.size(); ++a)
      for (uint32_t b = 0; b < tasks.size(); ++b)
        if (a != b) REQUIRE(order.is_before(a, b) == before[b][a]);
    for (size_t i = 0; i < order.steps.size(); ++i)
      if (order.steps[i].kind == Kind::kWait) REQUIRE_FALSE(keeps_all(tasks, closure(order, tasks.size(), i)));
  }
}

TEST_CASE("a record comes before its waits, so that one thread can launch step by step") {
  std::minstd_rand random(3);
  for (int round = 0; round < 30; ++round) {
    const Tasks tasks = random_tasks(random, 30, 2);
    const StreamChoice choice = asc::choose_streams(tasks, limits(4, true));
    std::vector<bool> is_recorded(choice.order.points, false);
    for (const StreamOrder::Step& step : choice.order.steps) {
      if (step.kind == Kind::kRecord) is_recorded[step.index] = true;
      if (step.kind == Kind::kWait) REQUIRE(is_recorded[step.index]);
    }
  }
}

TEST_CASE("a task that takes all CPUs has none beside it and stays on the first stream") {
  std::minstd_rand random(11);
  for (int round = 0; round < 30; ++round) {
    const Tasks tasks = random_tasks(random, 40, 1);
    const StreamChoice choice = asc::choose_streams(tasks, limits(3, true));
    if (choice.order.is_single()) continue;
    for (uint32_t a = 0; a < tasks.size(); ++a) {
      if (!tasks[a].is_alone) continue;
      CHECK(choice.order.stream_of[a] == 0);
      for (uint32_t b = 0; b < tasks.size(); ++b)
        if (a != b) REQUIRE((choice.order.is_before(a, b) || choice.order.is_before(b, a)));
    }
  }
}

TEST_CASE("two long branches take two streams and two waits for data, at half the time") {
  const StreamChoice choice = asc::choose_streams(two_branches(10, 100'000), limits(4));
  CHECK(choice.order.streams == 2);
  CHECK(choice.waits == 2);
  CHECK(choice.order.points == 2);
  CHECK(choice.predicted_ns < 0.6 * choice.one_ns);
  CHECK(choice.text.find("2 streams") == 0);
}

TEST_CASE("short branches, chains, and a limit of one stay on one stream and say why") {
  CHECK(asc::choose_streams(two_branches(10, 300), limits(4)).text.find("one stream: ") == 0);
  CHECK(asc::choose_streams(two_branches(10, 300), limits(4)).order.is_single());
  Tasks chain(20);
  for (uint32_t i = 0; i < chain.size(); ++i) {
    chain[i].ns = 1e6;
    if (i) chain[i].after = {i - 1};
  }
  CHECK(asc::choose_streams(chain, limits(4)).order.is_single());
  CHECK(asc::choose_streams(chain, limits(4, true)).text == "one stream: no task is independent of the others");
  StreamLimits one = limits(1);
  one.why_one = "asked for";
  CHECK(asc::choose_streams(two_branches(10, 1e6), one).text == "one stream: asked for");
  CHECK(asc::choose_streams({}, limits(4)).order.is_single());
  CHECK(asc::choose_streams(Tasks(asc::kMaxStreamTasks + 1), limits(4, true)).order.is_single());
}

TEST_CASE("a host that launches more slowly than tasks run keeps them on one stream") {
  StreamLimits paced = limits(4);
  paced.costs.pace_ns = 150'000;
  const StreamChoice one = asc::choose_streams(two_branches(10, 100'000), paced);
  CHECK((one.order.is_single() && one.one_ns == doctest::Approx(22 * 150'000 + 100'000)));
  paced.costs.pace_ns = 10'000;
  CHECK(asc::choose_streams(two_branches(10, 100'000), paced).order.streams == 2);
}

TEST_CASE("the same tasks give the same choice") {
  std::minstd_rand random(5);
  const Tasks tasks = random_tasks(random, 200, 2);
  const StreamChoice a = asc::choose_streams(tasks, limits(4)), b = asc::choose_streams(tasks, limits(4));
  CHECK(a.text == b.text);
  CHECK(a.order.stream_of == b.order.stream_of);
}

TEST_CASE("a race ends with the faster way, and is run again when others may have come or gone") {
  asc::StreamRace race(true);
  CHECK(race.next_uses_streams(false));  // nothing to time: as estimated
  CHECK(race.text() == "");
  const auto run_race = [&](uint64_t one, uint64_t several) {
    int timed[2] = {};
    for (int i = 0; i < 16; ++i) {
      const bool uses = race.next_uses_streams(true);
      ++timed[uses];
      race.note(i % 4 == 0 ? 1'000'000 : uses ? several : one);  // the first of each turn does not count
    }
    CHECK(timed[0] == timed[1]);
  };
  run_race(1000, 600);
  CHECK(race.text().find(": several") != std::string::npos);
  for (uint64_t i = 1; i < asc::StreamRace::kRunsApart; ++i) REQUIRE(race.next_uses_streams(true));
  CHECK(race.next_uses_streams(true));  // opens the next race
  run_race(1000, 5000);
  CHECK(race.text().find(": one for now") != std::string::npos);
  CHECK_FALSE(race.next_uses_streams(true));
  race.note(1);
  CHECK_FALSE(race.next_uses_streams(false));
  asc::StreamRace settled(false);
  for (int i = 0; i < 100; ++i) {
    CHECK(settled.next_uses_streams(true));
    settled.note(1);
  }
  CHECK(settled.text() == "");
}

TEST_CASE("a point hands over rounds, also where they wrap around") {
  for (uint32_t first : {1u, 0x7FFFFFF0u}) {
    Point there, back;
    there.record(first - 1, 0);
    back.record(first - 1, 0);
    uint64_t value = 0;
    asc::Thread other;
    other.start("other", [&] {
      for (uint32_t i = 0; i < 2000; ++i) {
        there.wait(first + i);
        ++value;
        back.record(first + i, i);
      }
    });
    bool is_right = true;
    for (uint32_t i = 0; i < 2000; ++i) {
      ++value;
      there.record(first + i, 0);
      is_right = is_right && back.wait(first + i) == i && value == 2 * (i + 1);
    }
    other.join();
    CHECK(is_right);
    CHECK(there.has_reached(first + 1999));
    CHECK_FALSE(there.has_reached(first + 2000));
  }
}

namespace {

// What the tasks of the next tests see behind their slots: plain memory, ordered by points alone.
Status add_one(const Task& task, void* const* slots, Worker&) {
  ++*static_cast<uint64_t*>(slots[task.node]);
  return Status::kOk;
}
Status add_up(const Task&, void* const* slots, Worker&) {
  *static_cast<uint64_t*>(slots[2]) += *static_cast<uint64_t*>(slots[0]) + *static_cast<uint64_t*>(slots[1]);
  return Status::kOk;
}
Status fail_always(const Task&, void* const*, Worker& worker) { return worker.fail(Status::kFailed, "on purpose"); }

Task make_task(asc::LaunchFn launch, uint32_t node) {
  Task task;
  task.launch = launch;
  task.node = node;
  return task;
}

// Stream 1 increments slot 1 while stream 0 increments slot 0; then stream 0 adds both to slot 2.
struct Fork {
  explicit Fork(asc::Device& device, asc::LaunchFn on_second = add_one) : streams(device) {
    streams.ensure(2);
    for (auto& chain : chains) chain = device.create_chain();
    chains[0]->add_record(start);
    chains[0]->add_task(make_task(add_one, 0));
    chains[0]->add_wait(end);
    chains[0]->add_task(make_task(add_up, 2));
    chains[1]->add_wait(start);
    chains[1]->add_task(make_task(on_second, 1));
    chains[1]->add_record(end);
    for (auto& chain : chains) chain->load();
  }
  void submit(Event& event, uint32_t round) {
    streams[1].submit(*chains[1], slots, &event, round, round);
    streams[0].submit(*chains[0], slots, &event, round, round);
    streams[0].record(&event);
  }

  Point start, end;
  uint64_t values[3] = {};
  void* slots[3] = {&values[0], &values[1], &values[2]};
  std::unique_ptr<asc::TaskChain> chains[2];
  asc::Streams streams;  // last: its destructor completes everything
};

}  // namespace

TEST_CASE("chains on two streams wait for one another, run after run") {
  const std::unique_ptr<asc::Device> devices[] = {asc::create_null_device(), asc::create_timed_device({1000})};
  for (const auto& device : devices) {
    Fork fork(*device);
    constexpr uint32_t kRuns = 500;
    std::vector<Event> events(kRuns);
    for (uint32_t i = 0; i < kRuns; ++i) fork.submit(events[i], i + 1);
    REQUIRE(events.back().wait(kDeadlineNs));
    CHECK(std::all_of(events.begin(), events.end(), [](const Event& e) { return e.is_done(); }));
    CHECK(fork.values[0] == kRuns);
    CHECK(fork.values[1] == kRuns);
    CHECK(fork.values[2] == uint64_t{kRuns} * (kRuns + 1));
  }
}

TEST_CASE("a first stream that runs inline waits for the second one's thread") {
  const auto device = asc::create_null_device();
  Fork fork(*device);
  for (uint32_t i = 1; i <= 500; ++i) {
    Event event;
    REQUIRE(fork.streams.first().begin_inline());
    fork.submit(event, i);
    fork.streams.first().end_inline();
    REQUIRE(event.is_done());
    REQUIRE(fork.values[2] == uint64_t{i} * (i + 1));
  }
  CHECK_FALSE(fork.streams[1].begin_inline());
}

TEST_CASE("a failure on one stream skips what follows on the other and leaves nobody waiting") {
  const auto device = asc::create_null_device();
  Fork fork(*device, fail_always);
  for (uint32_t i = 1; i <= 50; ++i) {
    Event event;
    fork.submit(event, i);
    REQUIRE(event.wait(kDeadlineNs));
    CHECK(event.status() == Status::kFailed);
    CHECK(event.error() == "on purpose");
    CHECK(event.failed_node() == 1);
  }
  CHECK(fork.values[2] == 0);
}

TEST_CASE("a cancelled run leaves nobody waiting") {
  asc::TimedOptions slow;
  slow.task_ns = 1'000'000;
  const auto device = asc::create_timed_device(slow);
  Fork fork(*device);
  std::vector<Event> events(20);
  for (uint32_t i = 0; i < events.size(); ++i) fork.submit(events[i], i + 1);
  for (Event& event : events) event.cancel();
  REQUIRE(events.back().wait(kDeadlineNs));
}

TEST_CASE("tasks launched one by one on two streams wait for points") {
  const auto device = asc::create_null_device();
  asc::Streams streams(*device);
  streams.ensure(2);
  Point start, end;
  uint64_t values[3] = {};
  void* slots[3] = {&values[0], &values[1], &values[2]};
  std::vector<Event> events(300);
  for (uint32_t i = 0; i < events.size(); ++i) {
    Event* event = &events[i];
    streams[0].record(start, i + 1, event);
    streams[1].wait(start, i + 1, event);
    streams[1].launch(make_task(add_one, 1), slots, event, i);
    streams[1].record(end, i + 1, event);
    streams[0].launch(make_task(add_one, 0), slots, event, i);
    streams[0].wait(end, i + 1, event);
    streams[0].launch(make_task(add_up, 2), slots, event, i);
    streams[0].record(event);
  }
  REQUIRE(events.back().wait(kDeadlineNs));
  CHECK(values[2] == 300 * 301);
}

TEST_CASE("timed streams run side by side, and a wait carries device time") {
  asc::TimedOptions options;
  options.task_ns = 150'000'000;  // longer than a busy machine lets a thread wait
  const auto device = asc::create_timed_device(options);
  Fork fork(*device);
  asc::Recorder recorder(1 << 16);
  Event event;
  event.recorder = &recorder;
  fork.submit(event, 1);
  REQUIRE(event.wait(kDeadlineNs));
  REQUIRE(recorder.device.size() == 2);
  REQUIRE(recorder.streams[0]);
  REQUIRE(recorder.streams[0]->size() == 1);
  const asc::Span &first = recorder.device.data()[0], &last = recorder.device.data()[1];
  const asc::Span& beside = recorder.streams[0]->data()[0];
  CHECK(beside.worker == 1);
  CHECK(beside.start_ticks < first.end_ticks);
  CHECK(first.start_ticks < beside.end_ticks);
  CHECK(last.start_ticks >= std::max(first.end_ticks, beside.end_ticks));
}

TEST_CASE("a chain that is loaded takes no points") {
  const auto device = asc::create_null_device();
  const auto chain = device->create_chain();
  Point point;
  chain->load();
  CHECK_THROWS_AS(chain->add_record(point), asc::DeviceError);
  CHECK_THROWS_AS(chain->add_wait(point), asc::DeviceError);
}
