// The last signature of an executable, ready to run again: a synchronous run with the same input shapes then only
// fills in addresses and submits. For plans of one segment whose schedule is kept; everything else, and every first
// run, takes the way through the levels. Guarded by the executable's lock.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "host/serial_executor.h"
#include "sink/loaded_schedule.h"

namespace asc {

class Repeat {
 public:
  struct Signature {
    uint64_t id = 0;                          // of a Repeat; 0: none
    std::vector<TensorView> inputs, outputs;  // types and shapes
  };

  // After a run of the root level that went through `schedule`; the second time in a row it is made ready.
  // `clears_results`: nobody else writes them.
  void note(const std::shared_ptr<BoundSchedule>& schedule, bool is_loaded, bool clears_results, const Plan& plan,
            const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs);
  void forget();
  const Signature& signature() const { return signature_; }

  // Executes inline between begin_inline and end_inline. `inputs` and `outputs` in graph order.
  void run(void* const* inputs, void* const* outputs, const std::byte* arena, const Streams& streams, Event& event,
           RunCounters& counters, uint32_t& sequence);
  size_t arena_bytes() const { return schedule_->schedule().arena_bytes; }

 private:
  using Slots = std::vector<std::pair<uint32_t, size_t>>;  // slot, position in graph order

  void make_ready(const Plan& plan);

  std::shared_ptr<BoundSchedule> seen_, schedule_;
  bool is_loaded_ = false, clears_results_ = false;
  BoundSchedule::Lease lease_;
  Slots inputs_, outputs_;
  Signature signature_;
  uint64_t last_id_ = 0;
};

}  // namespace asc
