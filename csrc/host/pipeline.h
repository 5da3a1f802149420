// Host mode on several threads: the launching thread infers shapes in order, helpers make the tilings that are not
// cached, one worker places memory, one launches. Batches of nodes go from stage to stage through bounded rings, so a
// segment's order is kept everywhere. One per executable; its threads start with the first run that needs them, park
// when there is nothing to do, and are joined by the destructor. run is guarded by the executable's lock.
#pragma once

#include <atomic>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "host/host_segment.h"
#include "host/pipeline_choice.h"
#include "sync/ring.h"
#include "sync/thread.h"
#include "sync/waiter.h"

namespace asc {

class Pipeline final : public Pool::Holder {
 public:
  // `helpers`: threads that make tilings beside the launching one.
  Pipeline(Pool& pool, int helpers);
  ~Pipeline() override;
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Launches the segment, and returns when everything is launched. Throws the first error of any stage.
  void run(HostSegment& segment, PipelineShape shape, Frame& frame, RunContext& run, int64_t* extents);

  // Between runs: from the next one on, `helpers` threads make tilings. Ends those that are too many.
  void resize(int helpers);
  int helpers() const { return helper_count_; }

  int64_t worker_cpu_ns() const;  // of all threads, ended ones included
  uint64_t runs() const { return runs_; }

  // Pool::Holder
  void settle() override;

 private:
  struct Work;  // one run of a segment
  struct Batch {
    Work* work = nullptr;
    uint32_t first = 0, count = 0;
    uint32_t changed = 0;  // bit i: node first + i was resolved anew
    int64_t spin_ns = 0;   // how long to look for the next one before parking: it comes soon
  };
  // A stage's queue: a ring, and where its two sides sleep.
  struct Inbox {
    Inbox();
    Ring<Batch> ring;
    Waiter work, space;
    std::atomic<bool> is_awake{false};  // the consumer looks for work without being woken
    void push(const Batch& batch);
    void pop_front();
    Batch* wait(int64_t spin_ns);  // null: closed
    void close();
  };

  void start();
  void resolve_all(Work& work);
  void take_pending(Work& work, bool must);
  void hand_over(Work& work, uint32_t end, bool is_last);
  void finish(Work& work);
  void place_batches();
  void launch_batches();
  void make_tilings(int index);
  void place(const Batch& batch);
  void pass_on(const Batch& batch);
  void launch(const Batch& batch);
  bool help();

  Pool& pool_;
  std::atomic<int> helper_count_;  // changes between runs; helpers numbered above it end
  const uint32_t fork_generation_;
  uint64_t runs_ = 0;
  int64_t ended_cpu_ns_ = 0;  // of helpers that are gone
  Inbox placing_, launching_;
  Batch placed_;  // placing worker: nodes of its batch that are placed and not passed on
  Waiter finished_;
  std::atomic<uint32_t> awaited_{0};  // nodes through the last stage that the launching thread sleeps for
  std::mutex jobs_mutex_;
  std::deque<std::shared_ptr<TilingJob>>
      jobs_;  // guarded by jobs_mutex_; made ones included, until a helper drops them
  std::atomic<bool> is_stopping_{false};
  Waiter jobs_waiter_;
  std::vector<std::unique_ptr<Thread>> helpers_;
  Thread placer_, launcher_;  // last: they use all of the above
};

}  // namespace asc
