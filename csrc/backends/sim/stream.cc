#include "backends/sim/stream.h"

#include <cstring>

#include "base/error.h"
#include "device/vector_chain.h"
#include "sync/fork.h"

namespace asc {
namespace {
constexpr size_t kMostKnown = size_t{1} << 20;  // tilings; then all are forgotten
}

SimStream::SimStream(const SimCosts& costs) : costs_(costs), fork_generation_(fork_generation()), clock_(costs) {}

void SimStream::require_same_process() const {
  if (fork_generation_ != fork_generation())
    throw DeviceError("[stream] this executable was created before fork(); compile it again in this process");
}

// Whether the run is recorded, and so charged.
bool SimStream::begin(Event* event) {
  require_same_process();
  recorder_ = event->recorder;
  if (recorder_ && event->run != run_) {
    run_ = event->run;
    clock_.begin_run(recorder_, run_);
  }
  return recorder_ != nullptr;
}

SimTask SimStream::charged(const Task& task, Event* event, uint32_t sequence) {
  const auto& tiling = *static_cast<const SimTiling*>(task.tiling);
  SimTask charged;
  charged.node = static_cast<int32_t>(task.node);
  charged.sequence = sequence;
  charged.kernel_ns = costs_.kernel_ns(tiling.work);
  charged.stages = event->recorder ? event->recorder->take_marks(charged.node) : 0;
  if (known_.size() >= kMostKnown) known_.clear();
  charged.is_tiling_made = known_.insert(tiling.number).second;
  return charged;
}

void SimStream::launch(const Task& task, void* const* slots, Event* event, uint32_t sequence) {
  const bool is_recorded = begin(event);
  const SimTask entry = charged(task, event, sequence);
  if (executor_.execute({{&task, 1}, slots, event, sequence, 0}) == 1 && is_recorded) clock_.launch(entry);
}

void SimStream::submit(const TaskChain& chain, void* const* slots, Event* event, uint32_t sequence, uint32_t) {
  const auto& loaded = static_cast<const VectorChain&>(chain);
  if (!loaded.is_loaded()) throw DeviceError("[stream.submit] the chain is not loaded; call load() first");
  const bool is_recorded = begin(event);
  std::vector<SimTask> entries;
  for (const Task& task : loaded.tasks()) entries.push_back(charged(task, event, sequence));
  entries.resize(executor_.execute({loaded.tasks(), slots, event, sequence, 0}));
  if (is_recorded) clock_.submit(entries, sequence);
}

void SimStream::copy(void* to, const void* from, size_t bytes, Event* event) {
  require_same_process();
  if (bytes && !event->has_failed()) std::memcpy(to, from, bytes);
}

// The event of a run has its recorder; that of a sync point inside a run has none.
void SimStream::record(Event* event) {
  if (event->recorder) begin(event);
  if (recorder_) clock_.await_device();
  if (event->recorder) {
    recorder_ = nullptr;
    run_ = 0;
  }
  event->signal();
}

bool SimStream::query() const {
  require_same_process();
  return true;
}

void SimStream::synchronize() { require_same_process(); }

}  // namespace asc
