// The stream that all devices share: order, back pressure, inline execution, errors, chains, recording, destruction.
#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "device/ring_stream.h"
#include "profile/recorder.h"
#include "sync/latch.h"
#include "sync/spin.h"

namespace {

using asc::Event;
using asc::RingStream;
using asc::Runner;
using asc::Stage;
using asc::Status;
using asc::Task;
using asc::Worker;

constexpr int64_t kDeadlineNs = 30'000'000'000;

// What the kernels of these tests see behind their first slot.
struct Log {
  std::vector<uint32_t> nodes;  // written by the executor, read after completion
  std::thread::id thread;
  asc::Latch gate;  // `wait_at_gate` stays until it opens
  std::atomic<bool> at_gate{false};
};

Log& log_of(void* const* slots) { return *static_cast<Log*>(slots[0]); }

Status note_node(const Task& task, void* const* slots, Worker&) {
  log_of(slots).nodes.push_back(task.node);
  log_of(slots).thread = std::this_thread::get_id();
  return Status::kOk;
}
Status wait_at_gate(const Task& task, void* const* slots, Worker& worker) {
  log_of(slots).at_gate = true;
  if (!log_of(slots).gate.wait(kDeadlineNs)) return worker.fail(Status::kFailed, "the gate stayed closed");
  return note_node(task, slots, worker);
}
Status fail_with_text(const Task&, void* const*, Worker& worker) {
  return worker.fail(Status::kOutOfRange, "index 9 of 4");
}
Status fail_silently(const Task&, void* const*, Worker&) { return Status::kInvalidValue; }
Status throw_out_of_memory(const Task&, void* const*, Worker&) { throw asc::OutOfMemoryError("asked too much"); }
Status throw_bad_alloc(const Task&, void* const*, Worker&) { throw std::bad_alloc(); }
Status throw_logic_error(const Task&, void* const*, Worker&) { throw std::logic_error("a bug"); }
Status throw_number(const Task&, void* const*, Worker&) { throw 42; }

Task make_task(asc::LaunchFn launch, uint32_t node) {
  Task task;
  task.launch = launch;
  task.node = node;
  return task;
}

// A stream with one run on it: a log, the slots that lead to it, and the run's event.
struct Fixture {
  explicit Fixture(size_t capacity = 64)
      : stream(std::make_unique<RingStream>(options(capacity), std::make_unique<Runner>(1))) {}
  static RingStream::Options options(size_t capacity) {
    RingStream::Options o;
    o.ring_capacity = capacity;
    return o;
  }
  void launch(asc::LaunchFn fn, uint32_t node) { stream->launch(make_task(fn, node), slots, &event, node); }
  bool finish() {
    stream->record(&event);
    return event.wait(kDeadlineNs);
  }

  Log log;
  void* slots[1] = {&log};
  Event event;
  std::unique_ptr<RingStream> stream;  // last: its destructor completes everything
};

std::vector<uint32_t> count_to(uint32_t n) {
  std::vector<uint32_t> v;
  for (uint32_t i = 0; i < n; ++i) v.push_back(i);
  return v;
}

}  // namespace

TEST_CASE("tasks run in order on the stream's own thread") {
  Fixture f(8);
  for (uint32_t i = 0; i < 1000; ++i) f.launch(note_node, i);
  REQUIRE(f.finish());
  CHECK(f.log.nodes == count_to(1000));
  CHECK((f.log.thread != std::this_thread::get_id()));
  f.stream->synchronize();
  CHECK(f.stream->query());
}

TEST_CASE("a copy takes its place in the order") {
  Fixture f;
  int value = 1, copied = 0;
  f.stream->copy(&copied, &value, sizeof value, &f.event);
  f.stream->copy(nullptr, nullptr, 0, &f.event);
  REQUIRE(f.finish());
  CHECK(copied == 1);
}

TEST_CASE("a launch on a full ring blocks until the executor makes room, and says so to the recorder") {
  Fixture f(2);
  asc::Recorder recorder(1 << 16);
  f.event.recorder = &recorder;
  f.event.run = 5;
  f.launch(wait_at_gate, 0);
  std::atomic<uint32_t> launched{1};
  asc::Thread launcher;
  launcher.start("launcher", [&] {
    for (uint32_t i = 1; i < 6; ++i, ++launched) f.launch(note_node, i);
  });
  // The gate holds one entry, so only one more fits.
  CHECK(asc::spin_until([&] { return launched == 2 && f.log.at_gate; }, kDeadlineNs));
  CHECK_FALSE(f.stream->query());
  CHECK(launched == 2);
  f.log.gate.open();
  launcher.join();
  REQUIRE(f.finish());
  CHECK(f.log.nodes == count_to(6));
  REQUIRE(recorder.host.size() >= 1);
  CHECK(recorder.host.data()[0].stage == Stage::kQueueFull);
  CHECK(recorder.host.data()[0].node == 2);
  CHECK(recorder.host.data()[0].run == 5);
}

TEST_CASE("inline execution happens on the caller's thread, at once") {
  Fixture f;
  REQUIRE(f.stream->begin_inline());
  CHECK_FALSE(f.stream->begin_inline());
  f.launch(note_node, 0);
  CHECK(f.log.nodes == count_to(1));
  CHECK((f.log.thread == std::this_thread::get_id()));
  int value = 3, copied = 0;
  f.stream->copy(&copied, &value, sizeof value, &f.event);
  CHECK(copied == 3);
  f.stream->record(&f.event);
  CHECK(f.event.is_done());
  f.stream->end_inline();
}

TEST_CASE("inline execution is refused while the executor is busy, and possible right after a wait") {
  Fixture f;
  for (uint32_t round = 0; round < 500; ++round) {
    f.launch(note_node, round);
    REQUIRE(f.finish());
    REQUIRE(f.stream->begin_inline());
    f.log.nodes.clear();
    f.launch(note_node, 0);
    f.stream->end_inline();
    f.event.reset();
  }
  f.launch(wait_at_gate, 1);
  CHECK_FALSE(f.stream->begin_inline());
  f.log.gate.open();
  REQUIRE(f.finish());
}

TEST_CASE("inline and threaded runs of one stream may alternate from different callers") {
  Fixture f;
  for (uint32_t i = 0; i < 300; ++i) {
    asc::Thread caller;
    caller.start("caller", [&f, i] {
      const bool is_inline = i % 2 && f.stream->begin_inline();
      f.launch(note_node, i);
      f.stream->record(&f.event);
      if (is_inline) f.stream->end_inline();
    });
    caller.join();
    REQUIRE(f.event.wait(kDeadlineNs));
    f.event.reset();
  }
  CHECK(f.log.nodes == count_to(300));
}

TEST_CASE("a device that cannot run inline says no") {
  RingStream::Options options;
  options.can_run_inline = false;
  RingStream stream(options, std::make_unique<Runner>(1));
  CHECK_FALSE(stream.begin_inline());
}

TEST_CASE("a failing task skips the rest of its run, copies included, and nothing of the next") {
  for (bool is_inline : {false, true}) {
    CAPTURE(is_inline);
    Fixture f;
    if (is_inline) REQUIRE(f.stream->begin_inline());
    int value = 1, copied = 0;
    f.launch(note_node, 0);
    f.launch(fail_with_text, 4);
    f.launch(note_node, 5);
    f.launch(throw_number, 6);
    f.stream->copy(&copied, &value, sizeof value, &f.event);
    REQUIRE(f.finish());
    CHECK(f.event.status() == Status::kOutOfRange);
    CHECK(f.event.failed_node() == 4);
    CHECK(f.event.error() == "index 9 of 4");
    CHECK(copied == 0);
    Event next;
    f.stream->launch(make_task(note_node, 1), f.slots, &next, 0);
    f.stream->record(&next);
    REQUIRE(next.wait(kDeadlineNs));
    CHECK(next.status() == Status::kOk);
    CHECK(f.log.nodes == count_to(2));
    if (is_inline) f.stream->end_inline();
  }
}

TEST_CASE("whatever a kernel throws becomes the error of the run") {
  struct Case {
    asc::LaunchFn launch;
    Status status;
    const char* text;
  };
  const Case cases[] = {{throw_out_of_memory, Status::kOutOfMemory, "asked too much"},
                        {throw_bad_alloc, Status::kOutOfMemory, "host memory exhausted"},
                        {throw_logic_error, Status::kFailed, "a bug"},
                        {throw_number, Status::kFailed, "unknown exception"},
                        {fail_silently, Status::kInvalidValue, "invalid value"}};
  for (bool is_inline : {false, true}) {
    for (const Case& c : cases) {
      CAPTURE(c.text);
      Fixture f;
      if (is_inline) REQUIRE(f.stream->begin_inline());
      f.launch(c.launch, 2);
      REQUIRE(f.finish());
      CHECK(f.event.status() == c.status);
      CHECK(f.event.failed_node() == 2);
      CHECK(f.event.error() == c.text);
      if (is_inline) f.stream->end_inline();
    }
  }
}

TEST_CASE("a chain runs as one entry, in order, and ends at its first error") {
  for (bool is_inline : {false, true}) {
    for (bool is_recorded : {false, true}) {
      CAPTURE(is_inline);
      CAPTURE(is_recorded);
      asc::VectorChain chain;
      for (uint32_t i = 0; i < 10; ++i) chain.add_task(make_task(i == 7 ? throw_logic_error : note_node, i));
      chain.load();
      CHECK(chain.task_count() == 10);
      CHECK(chain.bytes() >= 10 * sizeof(Task));
      asc::Recorder recorder(1 << 16);
      Fixture f;
      if (is_recorded) f.event.recorder = &recorder;
      if (is_inline) REQUIRE(f.stream->begin_inline());
      f.stream->submit(chain, f.slots, &f.event, 0);
      REQUIRE(f.finish());
      if (is_inline) f.stream->end_inline();
      CHECK(f.log.nodes == count_to(7));
      CHECK(f.event.failed_node() == 7);
      CHECK(f.event.error() == "a bug");
    }
  }
}

TEST_CASE("a chain is usable only once loaded, and closed then") {
  asc::VectorChain chain;
  Fixture f;
  CHECK_THROWS_AS(f.stream->submit(chain, f.slots, &f.event, 0), asc::DeviceError);
  chain.load();
  CHECK_THROWS_AS(chain.add_task(Task()), asc::DeviceError);
  f.stream->submit(chain, f.slots, &f.event, 0);
  CHECK(f.finish());
}

TEST_CASE("kernel spans carry node, run and sequence, and neighbours of a chain share a time stamp") {
  asc::VectorChain chain;
  for (uint32_t i = 0; i < 5; ++i) chain.add_task(make_task(note_node, i));
  chain.load();
  asc::Recorder recorder(1 << 16);
  Fixture f;
  f.event.recorder = &recorder;
  f.event.run = 3;
  f.stream->submit(chain, f.slots, &f.event, 11);
  f.launch(note_node, 9);
  REQUIRE(f.finish());
  REQUIRE(recorder.device.size() == 6);
  const asc::Span* spans = recorder.device.data();
  for (uint32_t i = 0; i < 5; ++i) {
    CHECK(spans[i].stage == Stage::kKernel);
    CHECK(spans[i].node == static_cast<int32_t>(i));
    CHECK(spans[i].run == 3);
    CHECK(spans[i].sequence == 11);
    CHECK(spans[i].start_ticks <= spans[i].end_ticks);
    if (i) CHECK(spans[i].start_ticks == spans[i - 1].end_ticks);
  }
  CHECK(spans[5].node == 9);
  CHECK(spans[5].start_ticks >= spans[4].end_ticks);
}

TEST_CASE("destroying a stream completes what is in flight") {
  for (int round = 0; round < 50; ++round) {
    Fixture f(128);
    for (uint32_t i = 0; i < 100; ++i) f.launch(note_node, i);
    f.stream->record(&f.event);
    f.stream.reset();
    REQUIRE(f.event.is_done());
    REQUIRE(f.log.nodes == count_to(100));
  }
}

TEST_CASE("synchronize waits for everything and works on an idle stream") {
  Fixture f;
  f.stream->synchronize();
  CHECK(f.stream->query());
  for (int round = 0; round < 200; ++round) {
    f.launch(note_node, 0);
    f.stream->synchronize();
    REQUIRE(f.log.nodes.size() == static_cast<size_t>(round) + 1);
  }
}

TEST_CASE("a child process gets an error from its parent's stream, and can drop it") {
  Fixture f;
  f.launch(wait_at_gate, 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(20);  // a hang ends the child, and the check below fails
    int errors = 0;
    const auto expect_error = [&](auto call) {
      try {
        call();
      } catch (const asc::DeviceError&) {
        ++errors;
      }
    };
    expect_error([&] { f.launch(note_node, 1); });
    expect_error([&] { f.stream->record(&f.event); });
    expect_error([&] { f.stream->synchronize(); });
    expect_error([&] { f.stream->query(); });
    expect_error([&] { f.stream->begin_inline(); });
    f.stream.reset();
    _exit(errors == 5 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  f.log.gate.open();
  CHECK(f.finish());
}
