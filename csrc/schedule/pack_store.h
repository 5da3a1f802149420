// Constants in the layouts that tilings want: one copy per (constants, layout), shared by nodes and schedules while
// anybody holds it, and found again as long as it lives. Guarded by the executable's lock.
#pragma once

#include <memory>
#include <unordered_map>

#include "kernel/kernel.h"
#include "plan/plan.h"
#include "schedule/keyed_cache.h"

namespace asc {

class PackStore {
 public:
  // Null when the tiling wants no packed constants. Throws OutOfMemoryError.
  std::shared_ptr<const Buffer> get(const Tiling& tiling, const PlanNode& node, const Plan& plan);
  size_t bytes() const;  // of the copies alive

 private:
  struct Entry {
    std::vector<uint64_t> key;
    std::weak_ptr<const Buffer> packed;
  };
  std::unordered_multimap<uint64_t, Entry> entries_;
};

}  // namespace asc
