// A plan on one device: the public face of the core. Thread-safe: runs are launched one at a time, in order.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/devices.h"
#include "runtime/foresight.h"
#include "runtime/hot_shapes.h"
#include "runtime/level.h"
#include "runtime/repeat.h"
#include "runtime/run.h"
#include "sync/occupant.h"

namespace asc {

struct ExecutableOptions {
  std::string device = "cpu";
  DeviceSettings settings;
  Mode mode = Mode::kAuto;
  bool use_memo = true;  // nodes remember their last inputs
  bool fuse = true;      // operators become one task where nobody else reads what is between them
  size_t tiling_cache_bytes = size_t{32} << 20;
  size_t schedule_cache_bytes = size_t{64} << 20;
  int pipeline_workers = -1;  // see LevelOptions
  int streams = 0;  // most that a run may use; 0: as many as the device has, where an estimate says that it pays
};

// Aggregate of counters, by name, for stats().
using Stats = std::vector<std::pair<std::string, double>>;

struct NodeInfo {
  std::string name, op;
};

// What a task works on, as it was resolved last.
struct TaskInfo {
  struct Operand {
    DType dtype = DType::kUndefined;  // kUndefined: absent
    Shape shape;
    bool is_constant = false;
  };
  uint32_t number = 0;         // of its node
  std::string implementation;  // empty: never resolved
  std::vector<Operand> inputs, outputs;
  std::vector<std::string> parts;  // operators of a fused node
};

class Executable : public std::enable_shared_from_this<Executable> {
 public:
  // Compiles the graph and binds it to the device. Throws GraphError, UnsupportedError, PlanError, DeviceError.
  static std::shared_ptr<Executable> create(Graph graph, const ExecutableOptions& options);
  ~Executable();

  // Launches a run. `inputs` in graph order; their buffers, and those of `bound` results (dtype kUndefined: a fresh
  // buffer), must outlive completion. Synchronous on an idle inline device: executes on this thread and returns done.
  // Throws GraphError for inputs that do not fit; errors of stages and kernels are raised by Run::wait.
  std::shared_ptr<Run> start(const std::vector<TensorView>& inputs, const std::vector<TensorView>& bound,
                             bool is_async);

  // The signatures that repeat accepts at present, by place, where they are others than `known`.
  std::vector<std::pair<size_t, Repeat::Signature>> changed_signatures(const Repeats::Ids& known);
  // Runs the model once more with the input shapes of signature `id`; `inputs` and `outputs` are the addresses of its
  // inputs and results. False, and nothing done, when the signature is out of date, the stream is busy, a recording is
  // on or, unless `may_block`, the executable is in use: start a run then. Throws the error of a kernel.
  bool repeat(uint64_t id, void* const* inputs, void* const* outputs, bool may_block);
  // Whether it has operators of users, whose time may change from run to run whatever the shapes.
  bool has_own_operators() const;

  // Runs the model on `inputs` and waits: tilings are cached afterwards, and schedules loaded unless in host mode.
  // Throws like start and wait.
  void warm_up(const std::vector<TensorView>& inputs);
  // Makes the schedule for inputs of these shapes ahead of a run, executing nothing: Level::resolve_ahead.
  std::optional<bool> resolve_ahead(const std::vector<Shape>& shapes);
  // From now on foresees the signatures of runs and resolves them ahead. Before the first run.
  void foresee(const ForesightPolicy& policy);
  // Waits until what is foreseen is resolved; false: the time is up.
  bool wait_foreseen(double timeout_s);
  // What was decided about schedules because of what is foreseen, since the last call; the latest ones.
  std::vector<Outlook::Decision> take_decisions();
  // What ran last, most recent first, bounded.
  std::vector<HotShape> hot_shapes();

  const Plan& plan() const { return *plan_; }
  const DeviceInfo& device_info() const { return device_->info(); }
  Mode mode() const { return options_.mode; }
  const NodeInfo& node(uint32_t number) const { return nodes_[number]; }
  const std::vector<NodeInfo>& nodes() const { return nodes_; }

  Stats stats();
  std::string explain();
  // Every task of the plan, bodies included, in plan order.
  std::vector<TaskInfo> tasks();
  void resize_caches(size_t tiling_bytes, size_t schedule_bytes);
  // As ExecutableOptions::pipeline_workers, from 1. Whether runs are pipelined stays as it was.
  void resize_workers(int workers);
  // Tests: drops the n-th entry of each cache, and what the resolvers remember.
  void drop_cache_entries(size_t n);
  // Tests: what schedule_validator.h finds in the schedules that were made last; empty: nothing.
  std::string find_race();

  // Records spans of runs started from now on. Throws PlanError when a recording is on already.
  void start_recording(size_t capacity_bytes);
  // Completes what is in flight and hands over the recording; null when none was on.
  std::unique_ptr<Recorder> stop_recording();

 private:
  friend class Run;
  Executable(std::shared_ptr<const Plan> plan, const ExecutableOptions& options);
  void launch(Run& run, const std::vector<TensorView>& inputs, const Sighting& sighting, bool is_async, bool is_warmup);
  Stats counters();
  // The lock of what is below. Throws PlanError in a thread that holds it: an operator may not run its own model.
  std::unique_lock<std::mutex> lock();
  // For the end of an earlier run, which an operator may see: no lock in a thread that holds it.
  std::unique_lock<std::mutex> lock_unless_executing();
  void execute(Run& run, RunContext& context, const std::vector<TensorView>& inputs);
  void check_process() const;
  void note_repeat(const Run& run, const std::vector<TensorView>& inputs);
  std::optional<bool> resolve_shapes(const std::vector<Shape>& shapes, uint64_t symbol, uint64_t& spent_ns);

  const std::shared_ptr<const Plan> plan_;
  const ExecutableOptions options_;
  const uint32_t fork_generation_;
  std::vector<NodeInfo> nodes_;  // by plan-wide number

  std::mutex mutex_;    // guards all below
  Occupant executing_;  // launches a run
  std::unique_ptr<Device> device_;
  std::unique_ptr<Streams> streams_;
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<Arena> arena_;
  std::unique_ptr<Pipeline> pipeline_;
  HostEvaluator host_;
  TilingCache::Share tilings_;
  PackStore packs_;
  ResolveContext context_;
  std::unique_ptr<Level> root_;
  RunCounters counters_;
  HotShapes hot_shapes_;
  uint32_t sequence_ = 0;
  Repeats repeats_;
  Event repeat_event_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<Foresight> foresight_;  // last: its thread uses all of the above; set before the first run
};

}  // namespace asc
