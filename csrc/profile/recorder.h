// Span recorder: what each host stage and each kernel did, and when. Off: a null pointer test. On: one time stamp per
// boundary. Memory is bounded; spans that do not fit are counted as lost.
//
// Each SpanLog has one writer at a time: `host` belongs to the thread that holds the executable's lock, `device` to the
// stream's executor (which may be the caller's thread), each of `workers` to one thread of the pipeline. Readers look
// after the runs of interest completed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "profile/clock.h"

namespace asc {

enum class Stage : uint8_t {
  kInferShape,
  kTiling,
  kAlloc,
  kLaunch,     // hand a task to the stream
  kSubmit,     // hand a chain to the stream
  kLoad,       // make a schedule resident on the device
  kFramework,  // argument checks, look-ups, result arrays
  kSync,       // host waits for a device value
  kQueueFull,  // launch blocked on a full stream
  kWait,       // caller waits for completion
  kKernel,     // device: a task executes
};

struct Span {
  uint64_t start_ticks = 0, end_ticks = 0;
  uint32_t run = 0;       // Recorder::begin_run
  int32_t node = -1;      // plan-wide node number, -1 for whole-run spans
  uint32_t sequence = 0;  // device entry number: joins a launch or submit to its kernels
  Stage stage = Stage::kFramework;
  uint8_t worker = 0;  // of the pipeline, see Recorder::worker; 0: the launching thread
};

class SpanLog {
 public:
  explicit SpanLog(size_t capacity) : spans_(capacity), free_(spans_.data()), end_(free_ + capacity) {}
  SpanLog(const SpanLog&) = delete;
  SpanLog& operator=(const SpanLog&) = delete;

  // Room for the next span, to be filled field by field: a copy of what was just written in pieces would stall. Null
  // where there is none; the span then counts as lost.
  Span* next() {
    if (__builtin_expect(free_ != end_, 1)) return free_++;
    ++lost_;
    return nullptr;
  }
  void add(const Span& s) {
    if (Span* room = next()) *room = s;
  }
  const Span* data() const { return spans_.data(); }
  size_t size() const { return static_cast<size_t>(free_ - spans_.data()); }
  uint64_t lost() const { return lost_; }

 private:
  std::vector<Span> spans_;
  Span *free_, *end_;
  uint64_t lost_ = 0;
};

class Recorder {
 public:
  static constexpr size_t kMaxWorkers = 16;

  // `capacity_bytes` bounds all logs together.
  explicit Recorder(size_t capacity_bytes)
      : host(capacity_bytes * 3 / 8 / sizeof(Span)),
        device(capacity_bytes * 3 / 8 / sizeof(Span)),
        worker_capacity_(capacity_bytes / 4 / kMaxWorkers / sizeof(Span)) {}

  // Number of the calling thread among the pipeline's workers, 1 to kMaxWorkers; 0: not one of them.
  static uint8_t& worker() {
    static thread_local uint8_t number = 0;
    return number;
  }
  // The log of host spans that the calling thread writes.
  SpanLog& log() {
    const uint8_t number = worker();
    if (number == 0) return host;
    std::unique_ptr<SpanLog>& own = workers[number - 1];
    if (!own) own = std::make_unique<SpanLog>(worker_capacity_);
    return *own;
  }

  uint32_t begin_run() { return ++run_; }
  bool was_inline = false;  // a recorded run executed on its caller's thread

  SpanLog host, device;
  std::array<std::unique_ptr<SpanLog>, kMaxWorkers> workers;  // by number - 1; null where it recorded nothing

 private:
  const size_t worker_capacity_;
  uint32_t run_ = 0;
};

// Times one host stage; does nothing when the recorder is null.
class StageTimer {
 public:
  StageTimer(Recorder* r, Stage stage, uint32_t run, int32_t node, uint32_t sequence = 0) : recorder_(r) {
    if (recorder_) span_ = {now_ticks(), 0, run, node, sequence, stage};
  }
  ~StageTimer() {
    if (!recorder_) return;
    span_.end_ticks = now_ticks();
    span_.worker = Recorder::worker();
    recorder_->log().add(span_);
  }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  Recorder* recorder_;
  Span span_;
};

}  // namespace asc
