// A schedule with the slot tables that its runs lease: what host and sink mode share of a signature that came back.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "device/streams.h"
#include "schedule/run_context.h"
#include "schedule/schedule.h"
#include "schedule/stream_race.h"

namespace asc {

class BoundSchedule {
 public:
  BoundSchedule(std::shared_ptr<const Schedule> schedule, const Plan& plan, size_t segment);
  virtual ~BoundSchedule() = default;

  // A table for one run: arena, inputs, results and extents filled in. The run keeps it, and `self`, until completion.
  // Throws OutOfMemoryError, and what Frame::place throws.
  static Table& lease(const std::shared_ptr<BoundSchedule>& self, Frame& frame, RunContext& run, int64_t* extents);

  struct InputSlot {
    uint32_t slot;
    ValueId root;
  };
  // A table kept for many runs, one after the other; given back by the destructor.
  class Lease {
   public:
    Lease() = default;
    explicit Lease(std::shared_ptr<TableStore> store) : store_(std::move(store)), table_(store_->lease()) {}
    Lease(Lease&& other) noexcept = default;
    Lease& operator=(Lease&& other) noexcept {
      std::swap(store_, other.store_);
      std::swap(table_, other.table_);
      return *this;
    }
    ~Lease() {
      if (table_) store_->give_back(std::move(table_));
    }
    Table& table() const { return *table_; }

   private:
    std::shared_ptr<TableStore> store_;
    std::unique_ptr<Table> table_;
  };
  // Its slots of inputs and results are not filled in.
  Lease take_table() const { return Lease(tables_); }

  // Whether it was made when its signature first came, which has not come back since. Guarded by the executable's lock.
  bool is_first_sighting = false;

  // Launches the tasks one by one, each on its stream. `recorder` may be null. Throws DeviceError; then nothing of the
  // schedule is executing on further streams any more.
  // `is_inline`: the first stream executes on this thread, so that the last launch returns when all are done.
  void launch_tasks(const Streams& streams, void* const* slots, Event& event, uint32_t& sequence, bool is_inline);
  // What races of several streams against one have shown; empty: nothing.
  std::string race_text() const { return race_.text(); }

  const Schedule& schedule() const { return *schedule_; }
  const std::vector<InputSlot>& inputs() const { return inputs_; }
  virtual size_t bytes() const { return bytes_; }

 protected:
  // The points of the schedule, and the number of its present run, which their rounds have.
  Point& point(uint32_t i) const { return points_[i]; }
  uint32_t begin_round() { return ++round_; }
  // Runs `on_one` or `on_streams`, as the race says, and times them where they return when all is done.
  template <typename One, typename Several>
  void race(bool is_inline, const Event& event, One&& on_one, Several&& on_streams) {
    const bool uses_streams = race_.next_uses_streams(is_inline && !event.recorder);
    const uint64_t start = now_ticks();
    uses_streams ? on_streams() : on_one();
    if (is_inline && !event.has_failed()) race_.note(now_ticks() - start);
  }
  // After an error of a stream, where not all streams have got all of a round: skips the run's tasks, records all
  // points and waits until the further streams are through.
  void give_up_round(const Streams& streams, Event& event, const char* what) noexcept;

 private:
  std::shared_ptr<const Schedule> schedule_;
  std::shared_ptr<TableStore> tables_;
  std::unique_ptr<Point[]> points_;
  uint32_t round_ = 0;
  StreamRace race_;
  std::vector<InputSlot> inputs_;
  std::vector<std::pair<uint32_t, size_t>> extents_;  // slot, offset in dims
  size_t bytes_;
};

}  // namespace asc
