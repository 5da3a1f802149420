// A segment resolved for one signature: every shape, tiling, host value and memory offset. Immutable once built; owns
// (shares) all that its tasks point to.
#pragma once

#include <memory>
#include <vector>

#include "schedule/memory_memo.h"
#include "schedule/resolver.h"
#include "schedule/stream_planner.h"

namespace asc {

struct Schedule {
  struct ArenaSlot {
    uint32_t slot;
    size_t offset;
    size_t bytes;
  };
  struct OutputSlot {
    uint32_t slot;
    ValueId root;
    size_t bytes;
  };
  struct Published {  // a value that outlives the segment
    ValueId value;
    Shape shape;
    std::shared_ptr<const HostTensor> host;  // null for data
  };

  std::vector<Task> tasks;
  StreamChoice streams;      // of the tasks
  std::vector<void*> table;  // constants, host values and packed constants; the rest is filled in per run
  std::vector<ArenaSlot> arena_slots;
  std::vector<OutputSlot> outputs;
  std::vector<Published> published;
  std::vector<std::pair<size_t, Shape>> bounds;  // node and upper bound of each data-dependent output, in order
  size_t arena_bytes = 0;
  size_t arena_bound = 0;  // no placement of the same buffers takes less; equal to arena_bytes: the arena is optimal
  size_t bytes = 0;        // of the schedule itself

  std::vector<std::shared_ptr<const void>> kept;  // tilings, packed constants, host values
};

// How many streams a schedule may use, and what is known of the device's tasks.
struct StreamSettings {
  StreamLimits limits;
  double task_ns = 0;  // what every task takes; 0: estimated
};

// The schedule of segment `s`, all of whose nodes the resolver has resolved for its present inputs. `memory`: of the
// segment's schedules before. An arena of at most `small` bytes is not searched for a lower plan.
std::shared_ptr<const Schedule> build_schedule(Resolver& resolver, size_t s, const StreamSettings& streams,
                                               MemoryMemo& memory, int64_t small);

// What the schedule of segment `s` depends on: shapes of its inputs, and the contents of those read on the host.
void make_signature(const Resolver& resolver, size_t s, Key& key);

}  // namespace asc
