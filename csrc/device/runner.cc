#include "device/runner.h"

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "base/error.h"
#include "profile/clock.h"

namespace asc {

namespace {

const char* text_of(Status status) {
  switch (status) {
    case Status::kOk:
      return "ok";
    case Status::kOutOfRange:
      return "index out of range";
    case Status::kInvalidValue:
      return "invalid value";
    case Status::kOutOfMemory:
      return "out of memory";
    case Status::kFailed:
      return "kernel failed";
    case Status::kLost:
      return "device lost";
  }
  return "unknown status";
}

// Launches `task` onwards until one fails; `task` is then that one. By reference, so that it survives an exception.
Status launch_each(const Task*& task, const Task* end, void* const* slots, Worker& worker) {
  for (; task != end; ++task) {
    const Status status = task->launch(*task, slots, worker);
    if (__builtin_expect(status != Status::kOk, 0)) return status;
  }
  return Status::kOk;
}

// The same with one span per task. Neighbours share the time stamp of their boundary.
Status launch_each_recorded(const Task*& task, const Batch& batch, Worker& worker, SpanLog& log) {
  const uint32_t run = batch.event->run, sequence = batch.sequence;
  uint64_t start = now_ticks();
  const uint8_t stream = Recorder::stream();
  for (; task != batch.tasks.end(); ++task) {
    const Status status = task->launch(*task, batch.slots, worker);
    const uint64_t end = now_ticks();
    if (Span* span = log.next()) {
      span->start_ticks = start;
      span->end_ticks = end;
      span->run = run;
      span->node = static_cast<int32_t>(task->node);
      span->sequence = sequence;
      span->stage = Stage::kKernel;
      span->worker = stream;
    }
    if (status != Status::kOk) return status;
    start = end;
  }
  return Status::kOk;
}

}  // namespace

size_t Runner::run_tasks(const Batch& batch, Recorder* recorder) noexcept {
  if (batch.event->has_failed()) return 0;
  const Task* task = batch.tasks.begin();
  try {
    const Status status = recorder ? launch_each_recorded(task, batch, worker_, recorder->device_log())
                                   : launch_each(task, batch.tasks.end(), batch.slots, worker_);
    if (status != Status::kOk)
      fail(batch, *task, status, worker_.error.empty() ? text_of(status) : worker_.error.c_str());
  } catch (const OutOfMemoryError& e) {
    fail(batch, *task, Status::kOutOfMemory, e.what());
  } catch (const std::bad_alloc&) {
    fail(batch, *task, Status::kOutOfMemory, "host memory exhausted");
  } catch (const std::exception& e) {
    fail(batch, *task, Status::kFailed, e.what());
  } catch (...) {
    fail(batch, *task, Status::kFailed, "unknown exception");
  }
  return static_cast<size_t>(task - batch.tasks.begin());
}

void Runner::fail(const Batch& batch, const Task& task, Status status, const char* what) noexcept {
  std::string text;
  try {
    text = what;
  } catch (const std::bad_alloc&) {
    // No memory even for the text: the status alone has to do.
  }
  batch.event->fail(task.node, status, std::move(text));
  worker_.error.clear();
}

}  // namespace asc
