// Tilings by kernel instance (kernel, attributes, constants that it reads, device options) and the shapes and host
// values that vary. One cache serves all executables on devices of one kind: equal nodes share entries wherever they
// are, and a tiling that several threads miss at the same time is made once. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernel/kernel.h"
#include "plan/plan.h"
#include "schedule/keyed_cache.h"
#include "sync/latch.h"

namespace asc {

// Of one type of operator.
struct TilingCounters {
  uint64_t hits = 0, misses = 0, evictions = 0;
  uint64_t bypasses_off = 0, bypasses_large = 0;  // the executable wants no cache; larger than the whole cache
  size_t entries = 0, bytes = 0;
  uint64_t made_ns = 0, saved_ns = 0;  // spent on misses; what hits would have cost again
};

class TilingCache {
 public:
  // Everything that cannot vary at run time, so that keys hold only what can.
  struct Instance {
    uint64_t number = 0;  // unique, never reused
    const Kernel* kernel = nullptr;
    std::string op;
    Attributes attributes;
    DeviceOptions options;
    std::vector<DType> input_types, output_types;
    uint64_t constant_inputs = 0;
    std::vector<Shape> constant_shapes;   // by input; empty where it is not constant
    std::vector<HostTensor> host_values;  // copies of constants that the operator reads, by input
    TilingCounters* counters = nullptr;   // of the operator; guarded by the cache's lock
    bool has_same_meaning(const Instance& other) const;
  };
  using InstancePtr = std::shared_ptr<const Instance>;

  // An executable's part in the cache. The cache is as large as the largest of its users wants.
  class Share {
   public:
    Share(std::shared_ptr<TilingCache> cache, size_t limit_bytes);
    ~Share();
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    // 0: this executable uses no cache.
    void resize(size_t limit_bytes);
    bool is_off() const { return limit_bytes_ == 0; }
    TilingCache& cache() const { return *cache_; }

   private:
    friend class TilingCache;
    const std::shared_ptr<TilingCache> cache_;
    const uint32_t fork_generation_;
    size_t limit_bytes_;
  };

  TilingCache() : entries_(0, &TilingCache::count_removal, this) {}

  // The instance of a node; one object for nodes whose tilings may be shared, as long as anybody uses it.
  InstancePtr intern(const Kernel* kernel, const PlanNode& node, const Plan& plan, const DeviceOptions& options);

  // Null on a miss. The key starts with the instance's number.
  std::shared_ptr<const Tiling> find(const Key& key, const Instance& instance);
  // After a miss: makes the tiling, or waits for the thread that is making it. Throws what `make` throws.
  std::shared_ptr<const Tiling> fill(const Key& key, const InstancePtr& instance,
                                     const std::function<std::shared_ptr<const Tiling>()>& make);
  // Makes a tiling past the cache, for a user that has turned it off.
  std::shared_ptr<const Tiling> bypass(const Instance& instance,
                                       const std::function<std::shared_ptr<const Tiling>()>& make);

  size_t limit_bytes();
  CacheCounters counters();
  std::map<std::string, TilingCounters> counters_by_op();
  // Drops the n-th entry, if there is one.
  void drop(size_t n);

 private:
  struct Entry {
    std::shared_ptr<const Tiling> tiling;
    InstancePtr instance;
    uint64_t made_ns;
  };
  struct Flight {  // a tiling being made
    std::vector<uint64_t> key;
    std::shared_ptr<const Tiling> tiling;  // null: it failed
    Latch done;
  };

  static void count_removal(void* self, const Entry& entry, size_t bytes, bool is_evicted);
  std::shared_ptr<const Tiling> find_locked(const Key& key, const Instance& instance);
  std::shared_ptr<Flight> join_flight(const Key& key, bool* is_mine);
  void set_limit();

  std::mutex mutex_;                                                               // guards all below
  std::unordered_multimap<std::string, std::weak_ptr<const Instance>> instances_;  // by operator
  uint64_t next_instance_ = 1;
  std::map<std::string, TilingCounters> by_op_;  // never shrinks: one per type of operator
  std::vector<std::shared_ptr<Flight>> flights_;
  std::vector<const Share*> shares_;
  KeyedCache<const Entry> entries_;
};

}  // namespace asc
