// The devices that compute nothing, and the memory that all devices share.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/null/device.h"
#include "backends/timed/device.h"
#include "base/error.h"
#include "base/tensor.h"
#include "device/memory.h"
#include "kernel/kernel.h"
#include "profile/clock.h"
#include "sync/thread.h"

namespace {

using asc::LimitedMemory;
using asc::OutOfMemoryError;
using asc::Status;

constexpr int64_t kDeadlineNs = 30'000'000'000;

Status do_nothing(const asc::Task&, void* const*, asc::Worker&) { return Status::kOk; }

asc::Task make_task(uint32_t node) {
  asc::Task task;
  task.launch = do_nothing;
  task.node = node;
  return task;
}

// The tiling of one node with one float input of `shape` and outputs of `outputs`.
std::shared_ptr<const asc::Tiling> make_tiling(const asc::Device& device, const std::string& op,
                                               const asc::Shape& shape, const std::vector<asc::Shape>& outputs) {
  asc::Node node;
  node.op = op;
  const asc::DType type = asc::DType::kFloat32;
  const std::vector<asc::DType> output_types(outputs.size(), type);
  const asc::Shape* shapes[] = {&shape};
  const asc::HostTensor* hosts[] = {nullptr};
  const asc::TilingContext context(node, &type, shapes, hosts, 1, output_types.data(), outputs.data(),
                                   static_cast<int>(outputs.size()), 0, device.options());
  const asc::Kernel* kernel = device.kernels().find(op, {type}, type);
  REQUIRE(kernel);
  return kernel->tiling(context);
}

}  // namespace

TEST_CASE("memory is aligned, counted and limited") {
  LimitedMemory memory("test", 1024);
  void* a = memory.allocate(100);
  void* b = memory.allocate(0);
  REQUIRE(a);
  REQUIRE(b);
  CHECK(reinterpret_cast<uintptr_t>(a) % asc::kAlignment == 0);
  CHECK(memory.used_bytes() == 128 + 64);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(memory.allocate(1000)),
      "[test.allocate] out of memory: asked 1000 bytes, used 192 bytes, limit 1024 bytes; raise memory_limit_bytes or "
      "run smaller inputs",
      OutOfMemoryError);
  CHECK(memory.used_bytes() == 192);
  void* c = memory.allocate(1024 - 192);
  memory.release(a, 100);
  memory.release(b, 0);
  memory.release(c, 1024 - 192);
  memory.release(nullptr, 5);
  CHECK(memory.used_bytes() == 0);
}

TEST_CASE("sizes that no machine has are refused, not wrapped around") {
  LimitedMemory memory("test", 0);
  for (size_t bytes : {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 64, SIZE_MAX / 2 + 1})
    CHECK_THROWS_AS(static_cast<void>(memory.allocate(bytes)), OutOfMemoryError);
  CHECK(memory.used_bytes() == 0);
}

TEST_CASE("threads that allocate together never pass the limit") {
  LimitedMemory memory("test", 10 * 64);
  {
    asc::Thread threads[3];
    for (asc::Thread& t : threads)
      t.start("allocator", [&memory] {
        for (int i = 0; i < 2'000; ++i) {
          try {
            void* p = memory.allocate(4 * 64);
            if (memory.used_bytes() > 10 * 64) return;  // leaves it allocated: the check below fails
            memory.release(p, 4 * 64);
          } catch (const OutOfMemoryError&) {
          }
        }
      });
  }
  CHECK(memory.used_bytes() == 0);
}

TEST_CASE("an empty kernel reports the upper bound of a data-dependent shape") {
  const auto device = asc::create_null_device();
  CHECK_FALSE(device->info().computes);
  const auto tiling = make_tiling(*device, "NonZero", {2, 3}, {{2, 6}});
  int64_t extent[asc::kMaxRank] = {};
  void* slots[] = {nullptr, nullptr, nullptr, nullptr, extent};
  const uint32_t operands[] = {0, 1, 2, 3, 4};
  asc::Task task;
  task.launch = tiling->launch;
  task.tiling = tiling.get();
  task.operands = operands;
  task.input_count = task.output_count = 1;
  const auto stream = device->create_stream();
  asc::Event event;
  stream->launch(task, slots, &event, 0);
  stream->record(&event);
  REQUIRE(event.wait(kDeadlineNs));
  CHECK(event.status() == Status::kOk);
  CHECK(extent[0] == 2);
  CHECK(extent[1] == 6);
}

TEST_CASE("null and timed devices accept any operator") {
  const auto tiling = make_tiling(*asc::create_timed_device(), "made.up::Op", {4}, {{4}, {1}});
  CHECK((tiling->launch != nullptr));
  CHECK(std::string(tiling->implementation) == "empty");
}

TEST_CASE("options out of range are refused by name") {
  asc::NullOptions null_options;
  null_options.ring_capacity = 0;
  CHECK_THROWS_AS(asc::create_null_device(null_options), asc::DeviceError);
  asc::TimedOptions timed_options;
  timed_options.task_ns = -1;
  CHECK_THROWS_AS(asc::create_timed_device(timed_options), asc::DeviceError);
}

TEST_CASE("timed kernels follow one another exactly, and the host works meanwhile") {
  asc::TimedOptions options;
  options.task_ns = 200'000;
  const auto device = asc::create_timed_device(options);
  const auto stream = device->create_stream();
  CHECK_FALSE(stream->begin_inline());
  asc::Recorder recorder(1 << 16);
  asc::Event event;
  event.recorder = &recorder;
  constexpr uint32_t kTasks = 20;
  for (uint32_t i = 0; i < kTasks; ++i) stream->launch(make_task(i), nullptr, &event, i);
  stream->record(&event);
  REQUIRE(event.wait(kDeadlineNs));
  const uint64_t end = asc::now_ticks();
  REQUIRE(recorder.device.size() == kTasks);
  const asc::Span* spans = recorder.device.data();
  const uint64_t task_ticks = spans[0].end_ticks - spans[0].start_ticks;
  CHECK(static_cast<double>(task_ticks) * asc::ns_per_tick() == doctest::Approx(200'000).epsilon(0.001));
  for (uint32_t i = 1; i < kTasks; ++i) {
    CHECK(spans[i].start_ticks >= spans[i - 1].end_ticks);
    CHECK(spans[i].end_ticks - spans[i].start_ticks == task_ticks);
    CHECK(spans[i].sequence == i);
  }
  CHECK(spans[kTasks - 1].end_ticks <= end);
  stream->synchronize();
  CHECK(stream->query());
}

TEST_CASE("a timed chain is one run of back-to-back kernels") {
  const auto device = asc::create_timed_device();
  const auto chain = device->create_chain();
  for (uint32_t i = 0; i < 50; ++i) chain->add_task(make_task(i));
  chain->load();
  const auto stream = device->create_stream();
  asc::Recorder recorder(1 << 16);
  asc::Event event;
  event.recorder = &recorder;
  const uint64_t before = asc::now_ticks();
  stream->submit(*chain, nullptr, &event, 1);
  const uint64_t after = asc::now_ticks();
  stream->record(&event);
  REQUIRE(event.wait(kDeadlineNs));
  REQUIRE(recorder.device.size() == 50);
  const asc::Span* spans = recorder.device.data();
  CHECK(spans[0].start_ticks >= before);
  CHECK(spans[0].start_ticks <= after);
  for (int i = 1; i < 50; ++i) CHECK(spans[i].start_ticks == spans[i - 1].end_ticks);
}

TEST_CASE("back pressure of a slow device reaches the launching thread") {
  asc::TimedOptions options;
  options.task_ns = 20'000'000;  // the launching thread would have to sleep as long to hide it
  options.ring_capacity = 1;
  const auto device = asc::create_timed_device(options);
  const auto stream = device->create_stream();
  asc::Recorder recorder(1 << 16);
  asc::Event event;
  event.recorder = &recorder;
  for (uint32_t i = 0; i < 4; ++i) stream->launch(make_task(i), nullptr, &event, i);
  stream->record(&event);
  REQUIRE(event.wait(kDeadlineNs));
  CHECK(recorder.device.size() == 4);
  CHECK(recorder.host.size() > 0);
  CHECK(recorder.host.data()[0].stage == asc::Stage::kQueueFull);
}
