// Executes tasks on the calling thread: the part of a stream that back ends vary.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/array_view.h"
#include "device/event.h"
#include "device/task.h"
#include "sync/point.h"

namespace asc {

// Tasks that entered a stream together.
struct Batch {
  ArrayView<const Task> tasks;
  void* const* slots = nullptr;
  Event* event = nullptr;
  uint32_t sequence = 0;
  uint64_t launched_ticks = 0;  // when they entered; only with RingStream::Options::stamps_launches
};

// One per stream, used by one thread at a time: its executor, or the launching thread while inline.
class Runner {
 public:
  explicit Runner(int threads) : worker_(threads) {}
  virtual ~Runner() = default;
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Runs the tasks in order. The first that fails or throws puts its error in the event and ends the batch. With a
  // recorder in the event, adds one kKernel span per launched task. Never throws.
  virtual void run(const Batch& batch) { run_tasks(batch, batch.event->recorder); }
  // Returns when all work so far has really ended: before an event is signalled, and before the stream looks idle.
  virtual void settle() {}

  // A point between streams, in the order of the tasks.
  virtual void record(Point& point, uint32_t round) { point.record(round, 0); }
  virtual void wait(const Point& point, uint32_t round) { point.wait(round); }

  // Once, on the executor's thread, before its first task.
  virtual void on_thread_start() {}
  // On the launching thread, around inline execution.
  virtual void on_begin_inline() {}
  virtual void on_end_inline() {}

 protected:
  // As run(); spans go to `recorder` unless it is null. Returns how many tasks succeeded.
  size_t run_tasks(const Batch& batch, Recorder* recorder) noexcept;

 private:
  void fail(const Batch& batch, const Task& task, Status status, const char* what) noexcept;

  Worker worker_;
};

}  // namespace asc
