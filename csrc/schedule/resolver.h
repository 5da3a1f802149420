// The one resolver: infer_shape and tiling for the nodes of one level, redone only where something changed. Host mode
// calls it node by node while the device runs; sink mode calls it for a whole segment and keeps the result.
//
// Every value carries the stamp of its last change, every node the stamp at which it was resolved: a node is redone
// when one of its inputs changed later. An output equal to its former self keeps its stamp, so the change stops there.
// A node that has to be redone first looks at its twin, the node of the same kernel instance that was resolved last:
// where their inputs are alike, as in models of equal layers, so are shapes and tiling. One ordered owner: guarded by
// the executable's lock.
#pragma once

#include <memory>
#include <vector>

#include "profile/recorder.h"
#include "schedule/host_values.h"
#include "schedule/pack_store.h"
#include "schedule/tiling_cache.h"
#include "schedule/tiling_job.h"

namespace asc {

struct ResolveCounters {
  uint64_t resolved = 0, skipped = 0;  // nodes
  uint64_t host_calls = 0;             // of callables outside the core
  uint64_t tiling_hits = 0, tiling_misses = 0, tiling_bypasses = 0;
  uint64_t twins = 0;  // nodes that took everything from an equal node resolved before
};

// What the levels of one executable share.
struct ResolveContext {
  std::string device;  // for messages
  const KernelRegistry* kernels = nullptr;
  const DeviceOptions* options = nullptr;
  size_t memory_limit_bytes = 0;  // of the device, of all host values together, and of all tables; 0: none
  size_t host_bytes = 0;          // of the host values that the resolvers hold
  size_t table_bytes = 0;         // of the tables of the tilings that they hold
  HostEvaluator* host = nullptr;
  TilingCache::Share* tilings = nullptr;
  PackStore* packs = nullptr;
  bool use_memo = true;
  ResolveCounters counters;
  // Objects that tasks in flight may still use; whoever runs takes them over and keeps them until completion.
  std::vector<std::shared_ptr<const void>> retired;
};

class Resolver {
 public:
  // Throws UnsupportedError listing every node without a kernel.
  Resolver(const Plan& plan, ResolveContext& context);

  void set_shape(ValueId v, const Shape& shape);
  void set_host(ValueId v, std::shared_ptr<const HostTensor> value);
  // As set_host, copying `view` only where it differs from the present value.
  void set_host_copy(ValueId v, const TensorView& view);

  // Sets a value that a cached schedule produced. Where that changes it, the node that computes it here has to be
  // resolved again before its memory of what it computed last can be trusted.
  void publish(ValueId v, const Shape& shape, const std::shared_ptr<const HostTensor>& host);

  const Shape& shape(ValueId v) const { return states_[v].shape; }
  const std::shared_ptr<const HostTensor>& host(ValueId v) const { return states_[v].host; }
  size_t bytes_of(ValueId v) const {
    return static_cast<size_t>(states_[v].shape.num_elements()) * size_of(plan_.values[v].type.dtype);
  }
  // Bytes that the task must be given for output `i`: the upper bound where the shape depends on data.
  size_t output_bytes(size_t s, size_t n, size_t i) const;
  // Largest shape of output `i` of a data-dependent node.
  const Shape& bound(size_t s, size_t n, size_t i) const { return memos_[s][n].bounds[i]; }

  // Brings node `n` of segment `s` up to date; false: it was. With `later`, a tiling that is not cached is not made but
  // left there as a job: commit it before the node's task is used, or abandon it. Timer: StageTimer, or NoTimer where
  // there is no recorder.
  template <class Timer = StageTimer>
  bool resolve(size_t s, size_t n, Recorder* recorder, uint32_t run, std::shared_ptr<TilingJob>* later = nullptr);
  // Waits for the job of a node. Throws what making the tiling threw; the node has to be resolved again then.
  void commit(size_t s, size_t n, TilingJob& job);
  void abandon(size_t s, size_t n) {
    memos_[s][n].stamp = 0;
    memos_[s][n].is_pending = false;
  }

  // Results of resolve for tasks.
  const Task& task(size_t s, size_t n) const { return memos_[s][n].task; }
  const std::shared_ptr<const Tiling>& tiling(size_t s, size_t n) const { return memos_[s][n].tiling; }
  const std::shared_ptr<const Buffer>& packed(size_t s, size_t n) const { return memos_[s][n].packed; }

  // Forgets what nodes remember (tests: results must not depend on it).
  void forget();

  const Plan& plan() const { return plan_; }
  ResolveContext& context() const { return context_; }

 private:
  struct ValueState {
    Shape shape;
    std::shared_ptr<const HostTensor> host;
  };
  struct NodeMemo {
    uint64_t stamp = 0;  // 0: never resolved
    const Kernel* kernel = nullptr;
    TilingCache::InstancePtr instance;
    std::shared_ptr<const Tiling> tiling;
    std::shared_ptr<const Buffer> packed;
    Task task;
    std::vector<Shape> bounds;  // data-dependent nodes: upper bounds of the output shapes
    int32_t kind = -1;          // index of `latest_`; -1: no other node may be its twin
    bool is_pending = false;    // the tiling of the last resolve is being made
  };
  struct Resolved {
    const PlanNode* node = nullptr;
    const NodeMemo* memo = nullptr;
  };

  void prepare(const PlanNode& node, NodeMemo& memo, std::string& missing);
  void find_kinds();
  bool is_current(const PlanNode& node, const NodeMemo& memo) const;
  bool follow_twin(const PlanNode& node, NodeMemo& memo);  // false where there is none
  bool has_like_inputs(const PlanNode& node, const PlanNode& other) const;
  void gather_inputs(const PlanNode& node);
  void infer(const PlanNode& node, NodeMemo& memo);
  void check_size(const PlanNode& node, size_t i) const;
  void count_host_bytes(ValueId v, const HostTensor& value);                                 // throws OutOfMemoryError
  void count_table_bytes(const PlanNode& node, const NodeMemo& memo, const Tiling& tiling);  // throws the same
  void compute_on_host(const PlanNode& node, NodeMemo& memo);
  void call_out(const PlanNode& node);
  void use_tiling(const PlanNode& node, NodeMemo& memo, std::shared_ptr<const Tiling> tiling);
  void make_key(const PlanNode& node, const NodeMemo& memo);
  std::shared_ptr<TilingJob> make_job(const PlanNode& node, const NodeMemo& memo) const;
  // Null when `later` took it.
  std::shared_ptr<const Tiling> find_tiling(const PlanNode& node, const NodeMemo& memo, const DeviceOptions& options,
                                            std::shared_ptr<TilingJob>* later);

  const Plan& plan_;
  ResolveContext& context_;
  uint64_t clock_ = 1;
  std::vector<ValueState> states_;
  std::vector<uint64_t> stamps_;              // by value: its last change
  std::vector<std::vector<NodeMemo>> memos_;  // by segment, node
  std::vector<NodeMemo*> producers_;          // by value; null for inputs and constants
  std::vector<Resolved> latest_;              // by NodeMemo::kind
  // Scratch of one resolve, kept to avoid allocation.
  std::vector<const Shape*> input_shapes_;
  std::vector<const HostTensor*> input_hosts_;
  std::vector<Shape> output_shapes_;
  Key key_;
};

}  // namespace asc
