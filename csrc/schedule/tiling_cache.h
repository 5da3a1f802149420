// Tilings by kernel instance (kernel, attributes, constants that it reads) and the shapes and host values that vary.
// Nodes with equal kernels and attributes share entries. Guarded by the executable's lock.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "plan/plan.h"
#include "schedule/keyed_cache.h"

namespace asc {

class TilingCache {
 public:
  explicit TilingCache(size_t limit_bytes) : entries_(limit_bytes) {}

  // Number of the kernel instance; equal for nodes whose tilings may be shared. It stands for everything that cannot
  // vary at run time, so that keys hold only what can: kernel, attributes, types, shapes of constant inputs, and the
  // values of those that the operator reads.
  uint64_t intern(const Kernel* kernel, const PlanNode& node, const Plan& plan);

  // The tiling for `key`, computed by `make` on a miss.
  template <typename Make>
  std::shared_ptr<const Tiling> get(const Key& key, Make&& make) {
    if (entries_.limit_bytes() == 0) return make();
    if (std::shared_ptr<const Tiling> found = entries_.find(key)) return found;
    std::shared_ptr<const Tiling> made = make();
    entries_.insert(key, made, made->bytes());
    return made;
  }

  KeyedCache<const Tiling>& entries() { return entries_; }

 private:
  struct Instance {
    const Kernel* kernel;
    Attributes attributes;
    std::vector<DType> input_types, output_types;
    uint64_t constant_inputs;
    std::vector<Shape> constant_shapes;                          // by input; empty where it is not constant
    std::vector<std::shared_ptr<const HostTensor>> host_values;  // of constants that the operator reads, by input
  };
  std::unordered_multimap<std::string, std::pair<uint64_t, Instance>> instances_;  // by operator
  uint64_t next_instance_ = 1;
  KeyedCache<const Tiling> entries_;
};

}  // namespace asc
