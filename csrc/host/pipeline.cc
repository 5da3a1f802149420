#include "host/pipeline.h"

#include <algorithm>
#include <thread>

#include "sync/fork.h"

namespace asc {
namespace {

constexpr size_t kBatches = 64;       // between two stages
constexpr uint32_t kBatchNodes = 32;  // bits of Batch::changed
// A batch waits no longer for further nodes: waking a worker costs some 10 us. The least where the worker is awake, so
// that stages of equal length are no more than that apart, and near both ends of a run, where it spins for what comes.
constexpr double kLeastBatchNs = 25'000, kMostBatchNs = 300'000;
constexpr size_t kPendingJobs = 16;  // tilings made ahead of the node at hand, per helper
constexpr int64_t kSpinNs = 0;       // elsewhere threads park at once: those they wait for need the CPU
constexpr int64_t kWakeNs = 10'000;  // a worker spins for as long as waking it would cost, then parks
constexpr uint8_t kPlacer = 1, kLauncher = 2, kFirstHelper = 3;  // Recorder::worker
constexpr int kMaxHelpers = static_cast<int>(Recorder::kMaxWorkers) - 2;

// Whether no more threads run than there are CPUs, so that workers may spin.
bool has_room_for(PipelineShape shape) {
  return default_spin_ns() > 0 && (shape == PipelineShape::kResolveThenRest || std::thread::hardware_concurrency() > 2);
}

}  // namespace

struct Pipeline::Work {
  Work(HostSegment& segment, const HostSegment::Use& use, PipelineShape shape)
      : segment(segment),
        use(use),
        shape(shape),
        may_spin(has_room_for(shape)),
        changed(segment.size()),
        start(now_ticks()) {}

  // How long a batch may wait, after `end` nodes were resolved by `now`.
  double patience_ns(uint32_t end, uint64_t now) const {
    const double past = static_cast<double>(now - start) * ns_per_tick();
    const double rest = past / end * static_cast<double>(segment.size() - end);
    return std::clamp(std::min(past, rest) / 2, kLeastBatchNs, kMostBatchNs);
  }

  HostSegment& segment;
  HostSegment::Use use;
  const PipelineShape shape;
  const bool may_spin;
  std::deque<std::pair<uint32_t, std::shared_ptr<TilingJob>>> pending;  // nodes whose tiling is being made
  std::vector<bool> changed;
  const uint64_t start;           // of the run
  uint32_t handed = 0;            // nodes given to the next stage
  uint32_t last_count = 0;        // of them, those of the last batch
  uint64_t batch_start = 0;       // when the node at `handed` was resolved
  std::atomic<uint32_t> done{0};  // nodes through the last stage
  std::atomic<bool> has_failed{false};
  std::mutex mutex;
  std::exception_ptr error;  // the first one

  void fail() {
    std::lock_guard<std::mutex> lock(mutex);
    if (!error) error = std::current_exception();
    has_failed = true;
  }
};

// --- inbox ---------------------------------------------------------------------------------------------------------

Pipeline::Inbox::Inbox() : ring(kBatches), work(kSpinNs), space(kSpinNs) {}

void Pipeline::Inbox::push(const Batch& batch) {
  space.wait([&] { return ring.try_push(batch); });
  work.wake();
}

void Pipeline::Inbox::pop_front() {
  ring.pop_front();
  space.wake();
}

Pipeline::Batch* Pipeline::Inbox::wait(int64_t spin_ns) {
  const auto has_work = [this] { return ring.front() != nullptr || ring.is_closed(); };
  if (!spin_until(has_work, spin_ns)) {
    is_awake = false;
    work.wait(has_work);
    is_awake = true;
  }
  return ring.front();
}

void Pipeline::Inbox::close() {
  ring.close();
  work.wake();
}

// --- owner ---------------------------------------------------------------------------------------------------------

Pipeline::Pipeline(Pool& pool, int helpers)
    : pool_(pool),
      helper_count_(std::clamp(helpers, 0, kMaxHelpers)),
      fork_generation_(fork_generation()),
      finished_(kSpinNs),
      jobs_waiter_(kSpinNs) {
  pool_.add_holder(this);
}

Pipeline::~Pipeline() {
  pool_.remove_holder(this);
  if (fork_generation_ == fork_generation()) {
    is_stopping_ = true;
    jobs_waiter_.wake();
    placing_.close();
    launching_.close();
  }
  for (auto& helper : helpers_) helper->join();
  placer_.join();
  launcher_.join();
}

void Pipeline::start() {
  if (!placer_.is_started()) placer_.start("asc-memory", [this] { place_batches(); });
  if (!launcher_.is_started()) launcher_.start("asc-launch", [this] { launch_batches(); });
  while (static_cast<int>(helpers_.size()) < helper_count_) {
    const auto index = static_cast<int>(helpers_.size());
    auto helper = std::make_unique<Thread>();
    helper->start(("asc-normal-" + std::to_string(index + 1)).c_str(), [this, index] {
      Recorder::worker() = static_cast<uint8_t>(kFirstHelper + index);
      make_tilings(index);
    });
    helpers_.push_back(std::move(helper));
  }
}

void Pipeline::resize(int helpers) {
  helper_count_ = std::clamp(helpers, 0, kMaxHelpers);
  jobs_waiter_.wake();
  while (static_cast<int>(helpers_.size()) > helper_count_) {
    ended_cpu_ns_ += helpers_.back()->cpu_ns();
    helpers_.back()->join();
    helpers_.pop_back();
  }
  const std::lock_guard<std::mutex> lock(jobs_mutex_);
  jobs_.clear();  // all are made
}

int64_t Pipeline::worker_cpu_ns() const {
  int64_t sum = ended_cpu_ns_ + placer_.cpu_ns() + launcher_.cpu_ns();
  for (const auto& helper : helpers_) sum += helper->cpu_ns();
  return sum;
}

void Pipeline::run(HostSegment& segment, PipelineShape shape, Frame& frame, RunContext& run, int64_t* extents) {
  start();
  ++runs_;
  Work work(segment, segment.begin(frame, run, extents), shape);
  try {
    resolve_all(work);
  } catch (...) {
    work.fail();
  }
  for (const auto& [n, job] : work.pending) {  // after an error: no job may outlast the run
    if (!job->try_make()) job->settle();
    segment.abandon(n);
  }
  finish(work);
  segment.end(work.use, !work.has_failed);
  if (work.error) std::rethrow_exception(work.error);
}

// Waits for the workers. Sleeps until they begin the last batch, which is short, and spins for its end: what follows on
// the stream is not to wait for a thread to wake up.
void Pipeline::finish(Work& work) {
  const auto sleep_until = [&](uint32_t count) {
    awaited_ = count;
    finished_.wait([&] { return work.done >= count; });
  };
  sleep_until(work.handed - work.last_count);
  if (!spin_until([&] { return work.done == work.handed; }, default_spin_ns())) sleep_until(work.handed);
}

// Called where memory ran out: by the placing worker, or by the launching thread while the workers have nothing to do.
void Pipeline::settle() {
  if (placed_.count) {
    const Batch batch = placed_;
    placed_.first += placed_.count;
    placed_.count = 0;
    pass_on(batch);
  }
  launching_.space.wait([this] { return launching_.ring.is_empty(); });
}

void Pipeline::resolve_all(Work& work) {
  const size_t most = kPendingJobs * static_cast<size_t>(helper_count_.load());
  for (uint32_t n = 0; n < work.segment.size() && !work.has_failed; ++n) {
    std::shared_ptr<TilingJob> job;
    work.changed[n] = work.segment.resolve<StageTimer>(n, work.use, helper_count_ ? &job : nullptr);
    if (n == work.handed) work.batch_start = now_ticks();
    if (job) {
      work.pending.emplace_back(n, job);
      {
        std::lock_guard<std::mutex> lock(jobs_mutex_);
        jobs_.push_back(std::move(job));
      }
      jobs_waiter_.wake();
    }
    take_pending(work, work.pending.size() > most);
    hand_over(work, work.pending.empty() ? n + 1 : work.pending.front().first, false);
  }
  while (!work.pending.empty() && !work.has_failed) {
    take_pending(work, true);
    hand_over(work, work.pending.empty() ? work.segment.size() : work.pending.front().first, false);
  }
  if (!work.has_failed) hand_over(work, work.segment.size(), true);
}

// Commits, in order, the tilings that are made; `must`: the oldest at least, working on others meanwhile.
void Pipeline::take_pending(Work& work, bool must) {
  while (!work.pending.empty() && (must || work.pending.front().second->is_made())) {
    const auto [n, job] = work.pending.front();
    hand_over(work, n, true);
    while (!job->is_made() && !job->try_make() && help()) continue;
    work.segment.commit(n, *job);
    work.pending.pop_front();
    must = false;
  }
}

// Gives nodes up to `end` to the next stage: at once where it is the first, which wakes the worker, or the last, else
// when a batch is full or old enough for a worker that is awake, or has to be woken.
void Pipeline::hand_over(Work& work, uint32_t end, bool is_last) {
  while (work.handed < end) {
    const uint32_t count = std::min(end - work.handed, kBatchNodes);
    const uint64_t now = now_ticks();
    const double age_ns = static_cast<double>(now - work.batch_start) * ns_per_tick();
    const bool may_wait = !is_last && work.handed && count < kBatchNodes;
    if (may_wait && age_ns < kLeastBatchNs) return;
    const double patience_ns = work.patience_ns(end, now);
    const auto is_awake = [this] { return placing_.is_awake || !placing_.ring.is_empty(); };
    if (may_wait && age_ns < patience_ns && !is_awake()) return;
    Batch batch{&work, work.handed, count, 0, 0};
    if (work.may_spin) batch.spin_ns = patience_ns > kLeastBatchNs ? kWakeNs : default_spin_ns();
    for (uint32_t i = 0; i < count; ++i) batch.changed |= uint32_t{work.changed[work.handed + i]} << i;
    work.handed += count;
    work.last_count = count;
    if (work.handed == work.segment.size()) batch.spin_ns = 0;
    work.batch_start = now;
    placing_.push(batch);
  }
}

// --- workers -------------------------------------------------------------------------------------------------------

void Pipeline::place_batches() {
  Recorder::worker() = kPlacer;
  int64_t spin_ns = 0;
  while (const Batch* next = placing_.wait(spin_ns)) {
    spin_ns = next->spin_ns;
    place(*next);
    placing_.pop_front();
  }
}

void Pipeline::launch_batches() {
  Recorder::worker() = kLauncher;
  int64_t spin_ns = 0;
  while (const Batch* next = launching_.wait(spin_ns)) {
    spin_ns = next->spin_ns;
    launch(*next);
    launching_.pop_front();
  }
}

void Pipeline::place(const Batch& batch) {
  Work& work = *batch.work;
  const uint32_t end = batch.first + batch.count;
  placed_ = {&work, batch.first, 0, 0, 0};
  try {
    for (uint32_t n = batch.first; n < end && !work.has_failed; ++n, ++placed_.count)
      work.segment.place<StageTimer>(n, (batch.changed >> (n - batch.first)) & 1u, work.use);
  } catch (...) {
    work.fail();
  }
  const Batch rest{&work, placed_.first, end - placed_.first, 0, batch.spin_ns};
  placed_.count = 0;
  pass_on(rest);
}

void Pipeline::pass_on(const Batch& batch) {
  if (batch.work->shape == PipelineShape::kThreeStages)
    launching_.push(batch);
  else
    launch(batch);
}

void Pipeline::launch(const Batch& batch) {
  Work& work = *batch.work;
  try {
    for (uint32_t i = 0; i < batch.count && !work.has_failed; ++i)
      work.segment.launch<StageTimer>(batch.first + i, work.use);
  } catch (...) {
    work.fail();
  }
  const uint32_t done = work.done += batch.count;  // the work may be gone now
  if (done >= awaited_) finished_.wake();
}

// Makes one tiling that nobody has begun; false when there is none.
bool Pipeline::help() {
  std::shared_ptr<TilingJob> next;
  {
    std::lock_guard<std::mutex> lock(jobs_mutex_);
    if (jobs_.empty()) return false;
    next = std::move(jobs_.front());
    jobs_.pop_front();
  }
  next->try_make();
  return true;
}

void Pipeline::make_tilings(int index) {
  const auto must_end = [this, index] { return is_stopping_ || index >= helper_count_; };
  for (;;) {
    jobs_waiter_.wait([&] {
      std::lock_guard<std::mutex> lock(jobs_mutex_);
      return !jobs_.empty() || must_end();
    });
    if (must_end()) return;
    help();
  }
}

}  // namespace asc
