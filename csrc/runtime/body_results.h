// Results of a body of control flow: pool blocks that the caller takes over, or places that it chooses.
#pragma once

#include <utility>
#include <vector>

#include "runtime/level.h"

namespace asc {

class BodyResults : public Results {
 public:
  BodyResults(Pool& pool, size_t count) : pool_(pool), places_(count) {}
  ~BodyResults() override {
    for (const Place& p : places_) {
      pool_.release(p.result);
      pool_.release(p.former);
    }
  }
  void* place(size_t i, size_t bytes) override;
  void set_shape(size_t, const Shape&) override {}  // the caller asks the body's level

  // Empty where the result lies at its target.
  Block take(size_t i) { return std::exchange(places_[i].result, Block{}); }
  // A former result, unchanged, which the next one may lie over: its readers are ordered before.
  void give_back(size_t i, Block former) {
    pool_.release(places_[i].former);
    places_[i].former = former;
  }
  // Where the next result goes if it takes `bytes`; part of what Pool::allocate_result gave.
  void set_target(size_t i, void* data, size_t bytes) {
    places_[i].target = data;
    places_[i].target_bytes = bytes;
  }

 private:
  struct Place {
    Block result, former;
    void* target = nullptr;
    size_t target_bytes = 0;
  };

  Pool& pool_;
  std::vector<Place> places_;
};

}  // namespace asc
