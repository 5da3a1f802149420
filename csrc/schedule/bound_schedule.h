// A schedule with the slot tables that its runs lease: what host and sink mode share of a signature that came back.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "schedule/run_context.h"
#include "schedule/schedule.h"

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

  const Schedule& schedule() const { return *schedule_; }
  const std::vector<InputSlot>& inputs() const { return inputs_; }
  virtual size_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<const Schedule> schedule_;
  std::shared_ptr<TableStore> tables_;
  std::vector<InputSlot> inputs_;
  std::vector<std::pair<uint32_t, size_t>> extents_;  // slot, offset in dims
  size_t bytes_;
};

}  // namespace asc
