// Span recorder: what each host stage and each kernel did, and when. Off: a null pointer test. On: one time stamp per
// boundary. Memory is bounded; spans that do not fit are counted as lost.
//
// Each SpanLog has one writer at a time: `host` belongs to the thread that holds the executable's lock, `device` to the
// stream's executor (which may be the caller's thread), each of `streams` to the executor of a further stream, each of
// `workers` to one thread of the pipeline. Readers look
// after the runs of interest completed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
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
  uint8_t worker = 0;  // of the pipeline, see Recorder::worker; 0: the launching thread. Device: the stream
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
  static constexpr size_t kMaxStreams = 16;  // beside the first

  // `capacity_bytes` bounds all logs together. `virtual_nodes`: above 0 for a device on a virtual clock, of a plan with
  // so many nodes.
  explicit Recorder(size_t capacity_bytes, size_t virtual_nodes = 0)
      : host(capacity_bytes * 3 / 8 / sizeof(Span)),
        device(capacity_bytes * 3 / 8 / sizeof(Span)),
        worker_capacity_(capacity_bytes / 8 / kMaxWorkers / sizeof(Span)),
        stream_capacity_(capacity_bytes / 8 / kMaxStreams / sizeof(Span)),
        marks_(virtual_nodes, 0) {}

  // On a virtual clock no stage is timed: each marks its node instead, and the device, which writes all spans, takes
  // the marks with the node's task. A node's stages come before its launch, on whatever thread.
  bool is_virtual() const { return !marks_.empty(); }
  void mark(Stage stage, int32_t node) {
    if (node >= 0 && static_cast<size_t>(node) < marks_.size())
      marks_[static_cast<size_t>(node)] |= static_cast<uint16_t>(1u << static_cast<unsigned>(stage));
  }
  // Bit by stage; from then on there are none.
  uint16_t take_marks(int32_t node) {
    if (node < 0 || static_cast<size_t>(node) >= marks_.size()) return 0;
    return std::exchange(marks_[static_cast<size_t>(node)], uint16_t{0});
  }

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

  // Number of the stream whose executor the calling thread is; 0: the first, also where it runs inline.
  static uint8_t& stream() {
    static thread_local uint8_t number = 0;
    return number;
  }
  // The log of device spans that the calling thread writes.
  SpanLog& device_log() {
    const uint8_t number = stream();
    if (number == 0) return device;
    std::unique_ptr<SpanLog>& own = streams[number - 1];
    if (!own) own = std::make_unique<SpanLog>(stream_capacity_);
    return *own;
  }

  uint32_t begin_run() { return ++run_; }
  bool was_inline = false;  // a recorded run executed on its caller's thread

  SpanLog host, device;
  // By number - 1; null where nothing was recorded.
  std::array<std::unique_ptr<SpanLog>, kMaxWorkers> workers;
  std::array<std::unique_ptr<SpanLog>, kMaxStreams> streams;

 private:
  const size_t worker_capacity_, stream_capacity_;
  std::vector<uint16_t> marks_;  // by node
  uint32_t run_ = 0;
};

// Times one host stage; does nothing when the recorder is null. What runs once a task is compiled a second time with
// NoTimer in its place, so that a recorder that is off costs no instruction there.
class StageTimer {
 public:
  StageTimer(Recorder* r, Stage stage, uint32_t run, int32_t node, uint32_t sequence = 0) : recorder_(r) {
    if (__builtin_expect(r != nullptr, 0)) begin(stage, run, node, sequence);
  }
  ~StageTimer() {
    if (__builtin_expect(recorder_ != nullptr, 0)) end();
  }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  // Not inlined, so that a timer that is off costs its two tests.
  __attribute__((noinline)) void begin(Stage stage, uint32_t run, int32_t node, uint32_t sequence) {
    if (recorder_->is_virtual()) {
      recorder_->mark(stage, node);
      recorder_ = nullptr;
      return;
    }
    run_ = run;
    node_ = node;
    sequence_ = sequence;
    stage_ = stage;
    start_ticks_ = now_ticks();
  }
  __attribute__((noinline)) void end() {
    recorder_->log().add({start_ticks_, now_ticks(), run_, node_, sequence_, stage_, Recorder::worker()});
  }

  Recorder* recorder_;
  uint64_t start_ticks_;  // this one and those below: set where recorder_ is
  uint32_t run_, sequence_;
  int32_t node_;
  Stage stage_;
};

struct NoTimer {
  NoTimer(Recorder*, Stage, uint32_t, int32_t, uint32_t = 0) {}
};

}  // namespace asc
