#include "device/ring_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "profile/clock.h"
#include "profile/recorder.h"
#include "sync/fork.h"

namespace asc {

RingStream::RingStream(const Options& options, std::unique_ptr<Runner> runner)
    : options_(options),
      wake_interval_(std::max<size_t>(1, options.ring_capacity / 2)),
      fork_generation_(fork_generation()),
      runner_(std::move(runner)),
      ring_(options.ring_capacity) {}

RingStream::~RingStream() {
  ring_.close();
  if (fork_generation_ == fork_generation()) work_.wake();
  thread_.join();
}

// --- launching thread --------------------------------------------------------------------------------------------

void RingStream::launch(const Task& task, void* const* slots, Event* event, uint32_t sequence) {
  if (is_inline_) {
    runner_->run({{&task, 1}, slots, event, sequence, 0});
    return;
  }
  Entry entry(Kind::kTask, event);
  entry.task = task;
  entry.slots = slots;
  entry.sequence = sequence;
  push(entry, static_cast<int32_t>(task.node));
}

void RingStream::submit(const TaskChain& chain, void* const* slots, Event* event, uint32_t sequence, uint32_t round) {
  const auto& loaded = static_cast<const VectorChain&>(chain);
  if (!loaded.is_loaded()) throw DeviceError("[stream.submit] the chain is not loaded; call load() first");
  if (is_inline_) {
    if (loaded.steps().empty())
      runner_->run({loaded.tasks(), slots, event, sequence, 0});
    else
      run_chain(loaded, {loaded.tasks(), slots, event, sequence, 0}, round);
    return;
  }
  Entry entry(Kind::kChain, event);
  entry.chain = {&loaded, round};
  entry.slots = slots;
  entry.sequence = sequence;
  push(entry, -1);
}

void RingStream::copy(void* to, const void* from, size_t bytes, Event* event) {
  Entry entry(Kind::kCopy, event);
  entry.copy = {to, from, bytes};
  if (is_inline_)
    execute(entry);
  else
    push(entry, -1);
}

void RingStream::record(Event* event) {
  if (is_inline_) {
    runner_->settle();
    event->signal();
    return;
  }
  Entry entry(Kind::kRecord, event);
  push(entry, -1);
}

void RingStream::record(Point& point, uint32_t round, Event* event) {
  if (is_inline_) return runner_->record(point, round);
  Entry entry(Kind::kRecordPoint, event);
  entry.point = {&point, nullptr, round};
  push(entry, -1);
}

void RingStream::wait(const Point& point, uint32_t round, Event* event) {
  if (is_inline_) return runner_->wait(point, round);
  Entry entry(Kind::kWaitPoint, event);
  entry.point = {nullptr, &point, round};
  push(entry, -1);
}

bool RingStream::query() const {
  require_same_process();
  if (ring_.is_empty()) return true;
  demand();
  return false;
}

void RingStream::synchronize() {
  require_same_process();
  demand();
  const uint64_t target = ring_.pushed();
  space_.wait([&] { return ring_.popped() >= target; });
}

bool RingStream::begin_inline() {
  require_same_process();
  if (!options_.can_run_inline || options_.number || is_inline_) return false;
  if (settled_ != ring_.pushed() && !ring_.is_empty()) return false;
  is_inline_ = true;
  runner_->on_begin_inline();
  return true;
}

void RingStream::end_inline() {
  runner_->on_end_inline();
  is_inline_ = false;
}

void RingStream::require_same_process() const {
  if (fork_generation_ != fork_generation())
    throw DeviceError("[stream] this executable was created before fork(); compile it again in this process");
}

void RingStream::push(Entry& entry, int32_t node) {
  require_same_process();
  if (!thread_.is_started()) start();
  if (options_.launch_ns) spin_for(options_.launch_ns);
  if (options_.stamps_launches) entry.launched_ticks = now_ticks();
  if (!ring_.try_push(entry)) {
    StageTimer timer(entry.event->recorder, Stage::kQueueFull, entry.event->run, node, entry.sequence);
    const uint64_t start = now_ticks();
    demand();
    space_.wait([&] { return ring_.try_push(entry); });
    blocked_ticks_ += now_ticks() - start;
  }
  if (!options_.is_lazy)
    work_.wake();
  else if (is_due(entry.kind))
    demand();
}

bool RingStream::is_due(Kind kind) const {
  const bool may_wait = kind == Kind::kTask || kind == Kind::kCopy;  // a chain holds points of its own
  return !may_wait || ring_.pushed() - due_ >= wake_interval_;
}

// All that was pushed before has to be executed now.
void RingStream::demand() const {
  const uint64_t pushed = ring_.pushed();
  uint64_t due = due_;
  while (due < pushed && !due_.compare_exchange_weak(due, pushed)) continue;
  work_.wake();
}

void RingStream::start() {
  const std::string name = options_.number ? "asc-stream-" + std::to_string(options_.number) : "asc-stream";
  thread_.start(name.c_str(), [this] { run_thread(); });
}

// --- executor ----------------------------------------------------------------------------------------------------

void RingStream::run_thread() noexcept {
  Recorder::stream() = static_cast<uint8_t>(options_.number);
  runner_->on_thread_start();
  while (Entry* entry = next_entry()) {
    ++executed_;
    execute(*entry);
    // After a record the runner may already be the launching thread's.
    if (entry->kind != Kind::kRecord && ring_.is_last()) runner_->settle();
    ring_.pop_front();
    if (executed_ % wake_interval_ == 0) space_.wake();
  }
}

// Null when the stream is being destroyed and nothing is left.
RingStream::Entry* RingStream::next_entry() {
  const auto has_work = [this] { return ring_.front() && (!options_.is_lazy || executed_ < due_); };
  if (has_work()) return ring_.front();
  space_.wake();
  work_.wait([&] { return has_work() || ring_.is_closed(); });
  return ring_.front();
}

void RingStream::execute(const Entry& entry) {
  switch (entry.kind) {
    case Kind::kTask:
      runner_->run({{&entry.task, 1}, entry.slots, entry.event, entry.sequence, entry.launched_ticks});
      break;
    case Kind::kChain:
      run_chain(*entry.chain.chain,
                {entry.chain.chain->tasks(), entry.slots, entry.event, entry.sequence, entry.launched_ticks},
                entry.chain.round);
      break;
    case Kind::kCopy:
      if (entry.copy.bytes && !entry.event->has_failed()) std::memcpy(entry.copy.to, entry.copy.from, entry.copy.bytes);
      break;
    case Kind::kRecord:
      finish(entry.event);
      break;
    case Kind::kRecordPoint:
      runner_->record(*entry.point.record, entry.point.round);
      break;
    case Kind::kWaitPoint:
      runner_->wait(*entry.point.wait, entry.point.round);
      break;
  }
}

// The run may be over, and the chain gone, once its last point is recorded.
void RingStream::run_chain(const VectorChain& chain, Batch batch, uint32_t round) {
  const ArrayView<const VectorChain::Step> steps = chain.steps();
  const Task* const end = batch.tasks.end();
  const Task* next = batch.tasks.begin();
  for (const VectorChain::Step& step : steps) {
    if (step.task_count) {
      batch.tasks = {next, step.task_count};
      runner_->run(batch);
      next += step.task_count;
    }
    if (step.record)
      runner_->record(*step.record, round);
    else
      runner_->wait(*step.wait, round);
  }
  if (next == end) return;
  batch.tasks = {next, static_cast<size_t>(end - next)};
  runner_->run(batch);
}

void RingStream::finish(Event* event) {
  runner_->settle();
  settled_ = executed_;
  event->signal();
}

}  // namespace asc
