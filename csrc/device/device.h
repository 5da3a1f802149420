// The device interface: what a back end implements. Everything above (schedule, host, sink, runtime) sees only this.
// All memory of the devices in this package is host-addressable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/event.h"
#include "device/task.h"
#include "sync/point.h"

namespace asc {

class KernelRegistry;  // kernel/kernel.h
struct DeviceOptions;

struct DeviceInfo {
  std::string name;                   // "cpu", "null", "timed", "sim"
  std::string description;            // one line for `ascendsched info`
  int threads = 1;                    // intra-op threads
  bool computes = true;               // false: results are not meaningful (null, timed)
  bool is_virtual = false;            // profiles are in virtual time, counted by the device: see Recorder::is_virtual
  bool has_fused_kernels = true;      // for the nodes that fusion makes
  bool can_scatter_in_place = false;  // ScatterElements and ScatterND: the result may lie over the data
  bool wants_channels_last = false;   // convolutions are faster on channels-last tensors
  bool can_run_inline = false;
  uint32_t max_streams = 1;       // that one executable may use side by side
  int64_t task_ns = 0;            // what every task takes; 0: it depends on the task
  int64_t wake_ns = 0;            // until an executor that has parked runs again
  size_t memory_limit_bytes = 0;  // 0: no limit
  size_t ring_capacity = 1024;    // entries that a stream holds before a launch blocks
};

// Tasks in order, resident on the device, and where they wait for other streams. Built by one thread: add_…, load;
// immutable afterwards. Points outlive the chain's submissions.
class TaskChain {
 public:
  virtual ~TaskChain() = default;
  virtual void add_task(const Task& task) = 0;
  virtual void add_record(Point& point) = 0;
  virtual void add_wait(const Point& point) = 0;
  // Makes the chain resident. Throws DeviceError.
  virtual void load() = 0;
  virtual size_t task_count() const = 0;
  virtual size_t bytes() const = 0;
};

// An in-order queue of one device. One launching thread at a time (callers serialise); the executor is the stream's own
// thread, or the launching thread between begin_inline and end_inline.
// `event` is never null. Every function throws DeviceError in a child process that was forked after construction.
class Stream {
 public:
  virtual ~Stream() = default;  // completes everything, then joins

  // Appends one task. Blocks while the ring is full. `task` is copied; `slots` and `event` must outlive completion.
  // When event->has_failed() at execution, the task is skipped. `sequence` numbers device entries for the recorder.
  virtual void launch(const Task& task, void* const* slots, Event* event, uint32_t sequence) = 0;
  // Appends a loaded chain as one entry. `round` is that of its points.
  virtual void submit(const TaskChain& chain, void* const* slots, Event* event, uint32_t sequence,
                      uint32_t round = 0) = 0;
  // Appends a memory copy, skipped like a task. The null and timed devices copy too, at no cost.
  virtual void copy(void* to, const void* from, size_t bytes, Event* event) = 0;
  // Signals `event` when everything appended before has been executed.
  virtual void record(Event* event) = 0;
  // Records a point when everything appended before has been executed; holds back what is appended after until the
  // point has reached `round`. Both happen whether the run has failed or not: no stream is left waiting for another.
  virtual void record(Point& point, uint32_t round, Event* event) = 0;
  virtual void wait(const Point& point, uint32_t round, Event* event) = 0;

  // Clock ticks that launches have spent waiting for room. Launching thread only.
  virtual uint64_t blocked_ticks() const { return 0; }

  // True when everything appended has been executed.
  virtual bool query() const = 0;
  // Returns when everything appended before has been executed. This one and query(): any thread.
  virtual void synchronize() = 0;

  // Makes the calling thread the executor when the stream is idle and the device can run inline; false otherwise.
  // Until end_inline, launch/submit/copy/record execute at once on this thread.
  virtual bool begin_inline() = 0;
  virtual void end_inline() = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual const KernelRegistry& kernels() const = 0;
  virtual const DeviceOptions& options() const = 0;

  // 64-byte aligned. Throws OutOfMemoryError (asked, used, limit).
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* data, size_t bytes) = 0;
  virtual size_t used_bytes() const = 0;

  // `number` tells the streams of an executable apart, in traces and thread names.
  virtual std::unique_ptr<Stream> create_stream(uint32_t number = 0) = 0;
  virtual std::unique_ptr<TaskChain> create_chain() = 0;
};

}  // namespace asc
