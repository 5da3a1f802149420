// Watches the runs of an executable, foresees the next signature, and has its schedule made on a thread of its own, in
// the caller's pauses and within a budget. Tells the schedule caches what is foreseen, and runs whether their signature
// is new.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/forecast.h"
#include "runtime/free_dims.h"
#include "schedule/retention.h"
#include "schedule/run_context.h"
#include "sync/thread.h"
#include "sync/waiter.h"

namespace asc {

// What is worth trying; set by Python.
struct ForesightPolicy {
  double min_confidence = 0;     // of the forecast, from 0 to 1
  double min_pause = 0;          // between two runs, in times of what resolving a signature takes
  double cpu_share = 0;          // of the time since the first run that may go into resolving ahead
  double free_ns = 0;            // that may be spent before that share is asked for
  uint64_t max_outstanding = 0;  // signatures resolved and not used yet
  uint64_t patience = 0;         // runs after which one that nobody used counts as wasted
};

class Foresight final : public Outlook {
 public:
  // Makes the schedule for these shapes, as Executable::resolve_ahead; the time it takes is added to `spent_ns`.
  using Resolve =
      std::function<std::optional<bool>(const std::vector<Shape>& shapes, uint64_t symbol, uint64_t& spent_ns)>;

  // `resolve` is called on the thread only, which starts with the first signature to resolve and ends with this.
  Foresight(const Plan& plan, const ForesightPolicy& policy, Resolve resolve);
  ~Foresight() override;
  Foresight(const Foresight&) = delete;
  Foresight& operator=(const Foresight&) = delete;

  // Around every run, one at a time; neither blocks. `arrived`: when it was asked for, in ticks. `inputs` fit the plan.
  // `had_schedule`: not node by node.
  Sighting begin_run(const std::vector<TensorView>& inputs, uint64_t arrived);
  void end_run(bool had_schedule);

  // Outlook
  std::vector<uint64_t> coming() override;
  void note_gone(uint64_t tag) override;
  void note_decision(Decision decision) override;
  // Any thread. The latest decisions, the oldest first, each given once.
  std::vector<Decision> take_decisions();

  // Any thread. What could not be resolved ahead is tried again: the caches have other bounds now.
  void try_again();

  // Any thread. Waits until all that was asked for is resolved; false: the time is up.
  bool wait_idle(int64_t timeout_ns);
  // Any thread. Counters since the start; those of the forecast, since the ranks of inputs changed last.
  std::vector<std::pair<std::string, double>> stats();
  std::string explain();

 private:
  struct Outstanding {
    uint64_t made_at = 0;  // run
    uint64_t spent_ns = 0;
  };
  struct Counts {
    uint64_t resolved = 0, used = 0, wasted = 0, unsure = 0, no_pause = 0, failed = 0;
    uint64_t spent_ns = 0, wasted_ns = 0;
  };

  void settle(uint64_t symbol);
  bool may_resolve(uint64_t foreseen);
  void ask_for(const Forecast::Signature& foreseen);
  void serve();
  void resolve_one(uint64_t symbol, const std::vector<Shape>& shapes);

  const ForesightPolicy policy_;
  const Resolve resolve_;

  std::mutex mutex_;  // guards what follows; held for short
  FreeDims dims_;
  Forecast forecast_;
  std::vector<int64_t> numbers_;
  uint64_t running_ = 0;      // symbol of the run at hand, or the last one
  bool is_foreseen_ = false;  // whether anything is, after it:
  Forecast::Signature foreseen_;
  std::deque<Decision> decisions_;            // the latest ones
  uint64_t start_ticks_ = 0, end_ticks_ = 0;  // of the first run, of the last one
  double pause_ns_ = 0, cost_ns_ = 0;         // between two runs, of resolving one signature; smoothed
  bool is_possible_ = true;
  RecentTable<bool> known_{1024};  // signatures that were resolved, or found to be, and not dropped since
  std::unordered_map<uint64_t, Outstanding> outstanding_;
  Counts counts_;
  uint64_t asked_symbol_ = 0;  // what to resolve next; 0: nothing
  std::vector<Shape> asked_shapes_;

  std::atomic<uint64_t> asked_{0}, served_{0};
  std::atomic<bool> is_stopping_{false};
  Waiter work_{0}, done_{0};
  Thread thread_;  // last: it uses all of the above
};

}  // namespace asc
