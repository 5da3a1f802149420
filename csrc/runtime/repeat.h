// The last signatures of an executable, ready to run again: a synchronous run with input shapes that came back then
// only fills in addresses and submits. For plans of one segment whose schedule is kept; everything else, and every
// first run, takes the way through the levels. Guarded by the executable's lock.
#pragma once

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "host/serial_executor.h"
#include "sink/loaded_schedule.h"

namespace asc {

// A schedule that was seen and, once it is ready, its signature.
class Repeat {
 public:
  struct Signature {
    uint64_t id = 0;                          // of a Repeat that is ready; 0: none
    std::vector<TensorView> inputs, outputs;  // types and shapes
  };

  void see(const std::shared_ptr<BoundSchedule>& schedule, uint64_t runs);
  // `clears_results`: nobody else writes them.
  void make_ready(Signature signature, bool is_loaded, bool clears_results, const Plan& plan);
  void forget();
  bool is_of(const std::shared_ptr<BoundSchedule>& schedule) const { return schedule == schedule_; }
  const Signature& signature() const { return signature_; }

  // Executes inline between begin_inline and end_inline. `inputs` and `outputs` in graph order.
  void run(void* const* inputs, void* const* outputs, const std::byte* arena, const Streams& streams, Event& event,
           RunCounters& counters, uint32_t& sequence);
  size_t arena_bytes() const { return schedule_->schedule().arena_bytes; }

  // The number of runs when it was seen or run last.
  uint64_t last_use() const { return last_use_; }

 private:
  using Slots = std::vector<std::pair<uint32_t, size_t>>;  // slot, position in graph order

  std::shared_ptr<BoundSchedule> schedule_;
  bool is_loaded_ = false, clears_results_ = false;
  BoundSchedule::Lease lease_;
  Slots inputs_, outputs_;
  Signature signature_;
  uint64_t last_use_ = 0;
};

// A few of them, each at a place of its own, which its id tells; a new one takes that of the one used longest ago.
class Repeats {
 public:
  static constexpr size_t kMost = 4;
  using Ids = std::array<uint64_t, kMost>;  // of signatures, by place

  // After a run of the root level, the `runs`-th, that went through `schedule`; what comes back while it is remembered
  // is made ready.
  void note(const std::shared_ptr<BoundSchedule>& schedule, uint64_t runs, bool is_loaded, bool clears_results,
            const Plan& plan, const std::vector<TensorView>& inputs, const std::vector<TensorView>& outputs);
  void forget();
  // The one with this id, or what has taken its place.
  Repeat& at(uint64_t id) { return places_[id % kMost]; }
  // Places, with their signatures, where these are others than `known`.
  std::vector<std::pair<size_t, Repeat::Signature>> changes(const Ids& known) const;

 private:
  std::array<Repeat, kMost> places_;
  uint64_t ready_ = 0;  // how many were made ready
};

}  // namespace asc
