// Runs one level of a plan: its segments in order, sync points between them, bodies of control flow as levels of their
// own. Guarded by the executable's lock.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "host/pipeline.h"
#include "host/serial_executor.h"
#include "runtime/sink_choice.h"
#include "schedule/keyed_cache.h"
#include "schedule/run_context.h"
#include "sink/loaded_schedule.h"

namespace asc {

enum class Mode : uint8_t { kHost, kSink, kAuto };

// Unwinds a run whose event already carries an error; never leaves runtime/.
struct RunAborted {};

struct Argument {
  TensorView view;
  std::shared_ptr<const HostTensor> host;  // set where the host knows the contents already
};

// Where the results of a level go.
class Results {
 public:
  virtual ~Results() = default;
  // Memory for output `i`, as Pool::allocate_result. Throws OutOfMemoryError, or GraphError where a bound result has
  // another size.
  virtual void* place(size_t i, size_t bytes) = 0;
  // The shape of output `i`, once everything is launched. Throws GraphError where a bound result has another one.
  virtual void set_shape(size_t i, const Shape& shape) = 0;
};

struct LevelOptions {
  Mode mode = Mode::kAuto;
  size_t schedule_cache_bytes = 0;
  int cpus = 1;               // that host stages may use at once
  int pipeline_workers = -1;  // threads that make tilings; 0: never pipelined, -1: where measured costs say so
  StreamSettings streams;
};

class Level : public Frame {
 public:
  Level(std::shared_ptr<const Plan> plan, ResolveContext& context, Device& device, Streams& streams, Pool& pool,
        Pipeline& pipeline, const LevelOptions& options);
  ~Level() override;

  // Launches the whole level; waits only at sync points. Throws RunAborted, or what a stage throws; then blocks are
  // released, tasks launched before keep running.
  void run(RunContext& run, const std::vector<Argument>& arguments, Results& results);
  // The same with other contents, where all else that the last run depended on is unchanged: shapes, what the host
  // reads. Needs whole_schedule(); throws the same.
  void run_again(RunContext& run, const std::vector<Argument>& arguments, Results& results);

  // Finds the shapes of the outputs that these arguments would give; false where that takes a run, or fails.
  bool infer_shapes(RunContext& run, const std::vector<Argument>& arguments);

  // Makes the schedule for arguments of which only the shapes are given, and keeps it; nothing executes. True: made;
  // false: it was there; none: it takes contents, several segments or a cache that is off. Throws what a stage throws.
  std::optional<bool> resolve_ahead(RunContext& run, const std::vector<Argument>& arguments);

  // Valid after run.
  const Shape& output_shape(size_t i) const { return resolver_.shape(plan_->outputs[i]); }
  const std::shared_ptr<const HostTensor>& host_output(size_t i) const {
    return resolver_.host(plan_->host_outputs[i]);
  }

  const Plan& plan() const { return *plan_; }
  const Resolver& resolver() const { return resolver_; }
  const LevelOptions& options() const { return options_; }
  // What the last run submitted or replayed, where that was all it did; null otherwise.
  const std::shared_ptr<BoundSchedule>& whole_schedule() const { return whole_schedule_; }
  // What was kept last for the segment; null where nothing was, or where it is gone.
  std::shared_ptr<const BoundSchedule> last_schedule(size_t s) const { return segments_[s].last.lock(); }
  // Null where the segment holds no tasks.
  const HostSegment* host_segment(size_t s) const { return segments_[s].host.get(); }
  const Level& body(size_t segment, size_t i) const { return *segments_[segment].bodies[i]; }
  CacheCounters schedule_counters() const;  // of this level and its bodies
  void resize_schedule_cache(size_t bytes);
  // Forecasts that say what the schedule caches of this level and its bodies keep. Outlives all runs.
  void set_outlook(Outlook* outlook);
  // Tests: drops one cached schedule of every segment, or what the resolver remembers.
  void drop_schedule(size_t n);
  std::string find_race() const;
  void forget();

  // Frame
  void* input(ValueId root) override { return frame_[root].data; }
  void* place(ValueId root, size_t bytes) override;

 private:
  struct FrameValue {
    void* data = nullptr;
    Block block;  // owned; null for arguments and results
  };
  struct SegmentState {
    std::unique_ptr<HostSegment> host;
    std::unique_ptr<KeyedCache<BoundSchedule>> schedules;  // loaded ones, unless in host mode
    std::unique_ptr<SinkChoice> choice;                    // when to keep one
    std::vector<std::unique_ptr<Level>> bodies;
    std::vector<int64_t> extents;
    std::weak_ptr<const BoundSchedule> last;
    bool has_room = true;  // for a schedule of the signature that was looked for last
    MemoryMemo memory;
  };

  // Releases what a run placed that is no result.
  class FrameGuard {
   public:
    explicit FrameGuard(Level& level) : level_(level) {}
    ~FrameGuard();

   private:
    Level& level_;
  };

  void bind(const std::vector<Argument>& arguments);
  void run_tasks(size_t s, RunContext& run);
  void run_known(size_t s, const std::shared_ptr<BoundSchedule>& known, RunContext& run);
  std::shared_ptr<BoundSchedule> find_schedule(size_t s, RunContext& run);
  bool is_due_before(SegmentState& state);
  bool learns_price(SegmentState& state);
  bool is_due_after(SegmentState& state, uint64_t host_ns, RunCounters& counters);
  std::shared_ptr<const Schedule> make_schedule(size_t s, RunContext& run, uint64_t& resolve_ns);
  std::shared_ptr<BoundSchedule> keep_schedule(size_t s, RunContext& run);
  void run_node_by_node(size_t s, RunContext& run);
  PipelineShape pipeline_shape(const HostSegment& segment, const RunContext& run) const;
  void publish(const Schedule& schedule);
  void run_if(size_t s, RunContext& run);
  void run_loop(size_t s, RunContext& run);
  void sync(RunContext& run, int32_t node);
  void read_extents(size_t s, const std::vector<std::pair<size_t, Shape>>& bounds);
  void read_back(const std::vector<ValueId>& values);
  Argument argument(ValueId v, bool needs_host);
  void set_result(ValueId v, const Shape& shape, Block block, RunContext& run);

  std::shared_ptr<const Plan> plan_;
  Device& device_;
  Streams& streams_;
  Pipeline& pipeline_;
  LevelOptions options_;
  Resolver resolver_;
  std::vector<SegmentState> segments_;
  std::shared_ptr<BoundSchedule> whole_schedule_;
  std::vector<FrameValue> frame_;  // by value (roots)
  std::vector<int32_t> output_of_root_;
  std::vector<Block> owned_;
  Results* results_ = nullptr;  // of the run at hand
  Pool* pool_ = nullptr;
  Key key_;
};

}  // namespace asc
