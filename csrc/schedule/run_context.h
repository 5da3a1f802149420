// What one run carries through segments and nested levels, and the slot tables that it leases.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "device/device.h"
#include "device/streams.h"
#include "plan/plan.h"
#include "profile/recorder.h"
#include "schedule/arena.h"
#include "schedule/pool.h"

namespace asc {

// Slot pointers of one segment for one run in flight.
struct Table {
  std::vector<void*> slots;
  const std::byte* arena_base = nullptr;  // schedules: what arena slots were computed from
  uint64_t version = 0, losses = 0;       // host mode: of the placements that the slots hold
};

// Tables with the fixed slots filled in, reused by later runs. Guarded by the executable's lock.
class TableStore {
 public:
  explicit TableStore(std::vector<void*> fixed) : fixed_(std::move(fixed)) {}
  std::unique_ptr<Table> lease() {
    if (free_.empty()) return std::make_unique<Table>(Table{fixed_});
    std::unique_ptr<Table> t = std::move(free_.back());
    free_.pop_back();
    return t;
  }
  void give_back(std::unique_ptr<Table> t) { free_.push_back(std::move(t)); }

 private:
  std::vector<void*> fixed_;
  std::vector<std::unique_ptr<Table>> free_;
};

struct RunCounters {
  uint64_t runs = 0, warmups = 0, launches = 0, replays = 0, submits = 0, submitted_tasks = 0, stream_waits = 0,
           loads = 0, load_ns = 0, syncs = 0;
  // Evidence for the choice of the mode: host time of segments, with their kernels where these execute inline. Node by
  // node at a signature's first sighting and later, from a kept schedule, and a sample of the latter.
  uint64_t first_segments = 0, first_segment_ns = 0, repeat_segments = 0, repeat_segment_ns = 0, known_segments = 0,
           sampled_segments = 0, sampled_segment_ns = 0;
  uint64_t arena_planned_bytes = 0, arena_bound_bytes = 0;  // of all schedules loaded: their arenas, the least possible
};

// Everything a run in flight must keep until its event is signalled.
struct RunHoldings {
  std::vector<std::pair<std::shared_ptr<TableStore>, std::unique_ptr<Table>>> tables;
  std::vector<std::shared_ptr<const void>> kept;

  // Keeps the first `table_count` tables and `kept_count` objects.
  void release(size_t table_count = 0, size_t kept_count = 0) {
    for (size_t i = table_count; i < tables.size(); ++i) tables[i].first->give_back(std::move(tables[i].second));
    tables.resize(table_count);
    kept.resize(kept_count);
  }
};

// What forecasts know of the signature of a run.
enum class Novelty : uint8_t { kUnknown, kNew, kSeen };
struct Sighting {
  uint64_t tag = 0;  // 0: nothing
  Novelty novelty = Novelty::kUnknown;
};

struct RunContext {
  Stream* stream = nullptr;  // the first of `streams`
  Streams* streams = nullptr;
  Event* event = nullptr;
  Recorder* recorder = nullptr;
  uint32_t run = 0;        // recorder's number
  uint32_t sequence = 0;   // device entries so far
  bool sinks_now = false;  // a warm-up: mode auto loads a schedule at the first sighting
  bool is_inline = false;  // tasks execute on this thread, so a launched task is a completed one
  Sighting sighting;
  Pool* pool = nullptr;
  Arena* arena = nullptr;
  RunCounters* counters = nullptr;
  RunHoldings* holdings = nullptr;

  Table& lease(const std::shared_ptr<TableStore>& store) {
    holdings->tables.emplace_back(store, store->lease());
    return *holdings->tables.back().second;
  }
};

// Where a segment finds its inputs and puts its outputs: the frame of its level.
class Frame {
 public:
  virtual ~Frame() = default;
  virtual void* input(ValueId root) = 0;
  // Memory of at least `bytes` for a root that outlives the segment. Throws OutOfMemoryError, GraphError (a bound
  // result of another size).
  virtual void* place(ValueId root, size_t bytes) = 0;
};

}  // namespace asc
