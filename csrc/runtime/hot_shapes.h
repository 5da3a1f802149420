// What an executable ran last: input shapes, and the contents of small inputs that shapes depend on. Saved with it, so
// that a loaded executable starts warm. Guarded by the executable's lock.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace asc {

struct HotShape {
  std::vector<Shape> shapes;       // by input
  std::vector<HostTensor> values;  // by input; dtype kUndefined where the contents do not matter
};

class HotShapes {
 public:
  static constexpr size_t kMaxCount = 16;
  static constexpr size_t kMaxValueBytes = 4096;  // of one input; a run with more is not remembered

  // Puts the signature of a run in front. Costs a hash of its dims when it ran before.
  void note(const Plan& plan, const std::vector<TensorView>& inputs);
  // Most recent first.
  std::vector<HotShape> list() const;

 private:
  struct Entry {
    uint64_t hash = 0;
    HotShape hot;
  };
  std::vector<Entry> entries_;  // most recent first
  std::vector<uint64_t> words_;
};

}  // namespace asc
