// A task segment in host mode: what each of its nodes touches, where its slots live, and the two stages that follow
// resolving. Serial and pipelined execution drive the same one. Guarded by the executable's lock; within a run, place
// belongs to one thread and launch to one thread.
#pragma once

#include <vector>

#include "host/host_streams.h"
#include "host/placements.h"
#include "schedule/resolver.h"
#include "schedule/run_context.h"

namespace asc {

// Of one node on average; what a launch waited for room is not counted.
struct StageCosts {
  double resolve_ns = 0, place_ns = 0, launch_ns = 0;
  size_t nodes = 0;  // of the segment; 0: not measured
};

class HostSegment {
 public:
  // One run of the segment.
  struct Use {
    Frame* frame = nullptr;
    RunContext* run = nullptr;
    Table* table = nullptr;
    int64_t* extents = nullptr;  // dims of data-dependent outputs, kMaxRank per output
    bool is_lost = false;        // slots lost their memory since the table was filled
    uint64_t losses = 0;
    HostStreams* streams = nullptr;  // where the run uses several
  };

  HostSegment(Resolver& resolver, size_t segment, Pool& pool, const StreamSettings& streams);

  uint32_t size() const { return static_cast<uint32_t>(steps_.size()); }
  Resolver& resolver() const { return resolver_; }
  // The stages of node `n`, each timed by a Timer: StageTimer, or NoTimer where nothing is recorded.
  template <class Timer>
  bool resolve(uint32_t n, const Use& use, std::shared_ptr<TilingJob>* later = nullptr) {
    return resolver_.resolve<Timer>(index_, n, use.run->recorder, use.run->run, later);
  }
  void commit(uint32_t n, TilingJob& job) { resolver_.commit(index_, n, job); }
  void abandon(uint32_t n) { resolver_.abandon(index_, n); }

  Use begin(Frame& frame, RunContext& run, int64_t* extents);
  // Memory for what it writes, where resolving changed it. Throws OutOfMemoryError, and what Frame::place throws.
  template <class Timer>
  void place(uint32_t n, bool has_changed, Use& use);
  // Throws DeviceError.
  template <class Timer>
  void launch(uint32_t n, const Use& use);
  void end(Use& use, bool is_complete);
  // Nodes were resolved for another purpose: the next run places everything again, not only what changes then.
  void doubt_places() { placements_.doubt(); }

  const HostStreams& streams() const { return streams_; }
  // After a complete run whose launches came `pace_ns` apart.
  void choose_streams(double pace_ns) {
    if (streams_.choose(pace_ns)) placements_.set_order(streams_.order());
  }
  // Tests: what schedule_validator.h finds in the places of the last run; empty: nothing.
  std::string find_race() const;

  // Of the latest serial run that did not execute on the calling thread, of this novelty: new signatures take longer to
  // resolve than those whose tilings are cached.
  StageCosts& costs(Novelty novelty) { return costs_[static_cast<size_t>(novelty)]; }
  const StageCosts& costs(Novelty novelty) const { return costs_[static_cast<size_t>(novelty)]; }

 private:
  struct Result {
    uint32_t output, slot;
    ValueId root;  // kNoValue: internal
  };
  struct Step {  // what a node touches, found once
    const PlanNode* node = nullptr;
    std::vector<Result> results;
    std::vector<std::pair<uint32_t, ValueId>> hosts;  // slots of host values that it computes
    uint32_t workspace = 0, packed = 0, extent = 0;
    bool is_task = false;
    size_t extent_at = 0;  // offset in the dims of data-dependent outputs
  };

  Step make_step(const PlanNode& node) const;
  void place_internals(uint32_t n, const Step& step, Table& table);
  template <class Timer>
  void launch_on(Stream& stream, uint32_t n, const Use& use);
  template <class Timer>
  void launch_prepared(uint32_t n, const Use& use);

  Resolver& resolver_;
  const size_t index_;
  const Segment& segment_;
  std::shared_ptr<TableStore> tables_;
  Placements placements_;
  HostStreams streams_;
  StageCosts costs_[3];                                 // by novelty
  std::vector<Step> steps_;                             // by node
  std::vector<std::pair<uint32_t, ValueId>> inputs_;    // slots bound before the segment runs
  std::vector<std::pair<uint32_t, ValueId>> host_ins_;  // slots of host values from outside
};

}  // namespace asc
