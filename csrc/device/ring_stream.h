// The stream of every device whose executor is a CPU thread: a bounded ring of entries and one thread, "asc-stream",
// which starts with the first entry that needs it. What running a task means is the Runner's business.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "device/device.h"
#include "device/runner.h"
#include "device/vector_chain.h"
#include "sync/ring.h"
#include "sync/thread.h"
#include "sync/waiter.h"

namespace asc {

// Threads: one launching thread at a time; query() and synchronize() from any. Executor and launching thread never run
// tasks at the same time without a lock, since inline execution begins only when the ring is empty and only the
// launching thread can fill it.
//
// Every function throws DeviceError in a child process that was forked after construction; there the destructor joins
// and completes nothing.
class RingStream final : public Stream {
 public:
  struct Options {
    size_t ring_capacity = 1024;
    bool can_run_inline = true;
    int64_t launch_ns = 0;  // time that a launch takes at least, as with a slow driver
    // The executor is woken only for what somebody waits for (records, points) and for a ring that fills up: for
    // devices whose time does not depend on when they look.
    bool is_lazy = false;
    uint32_t number = 0;           // 0 alone may run inline
    bool stamps_launches = false;  // fill Batch::launched_ticks of entries that go through the ring
  };

  RingStream(const Options& options, std::unique_ptr<Runner> runner);
  ~RingStream() override;

  void launch(const Task& task, void* const* slots, Event* event, uint32_t sequence) override;
  // `chain` must be a loaded VectorChain and outlive completion. Throws DeviceError when it is not loaded.
  void submit(const TaskChain& chain, void* const* slots, Event* event, uint32_t sequence, uint32_t round = 0) override;
  void copy(void* to, const void* from, size_t bytes, Event* event) override;
  void record(Event* event) override;
  void record(Point& point, uint32_t round, Event* event) override;
  void wait(const Point& point, uint32_t round, Event* event) override;
  uint64_t blocked_ticks() const override { return blocked_ticks_; }
  bool query() const override;
  void synchronize() override;
  bool begin_inline() override;
  void end_inline() override;

 private:
  enum class Kind : uint8_t { kTask, kChain, kCopy, kRecord, kRecordPoint, kWaitPoint };
  struct ChainArgs {
    const VectorChain* chain;
    uint32_t round;
  };
  struct PointArgs {
    Point* record;
    const Point* wait;
    uint32_t round;
  };
  struct CopyArgs {
    void* to;
    const void* from;
    size_t bytes;
  };
  struct alignas(kCacheLine) Entry {
    union {
      Task task;
      ChainArgs chain;
      PointArgs point;
      CopyArgs copy;
    };
    void* const* slots = nullptr;
    Event* event = nullptr;
    uint64_t launched_ticks = 0;
    uint32_t sequence = 0;
    Kind kind = Kind::kRecord;

    Entry(Kind kind, Event* event) : copy{}, event(event), kind(kind) {}
  };

  void require_same_process() const;
  void start();
  void push(Entry& entry, int32_t node);
  bool is_due(Kind kind) const;
  void demand() const;
  void run_thread() noexcept;
  Entry* next_entry();
  void execute(const Entry& entry);
  void run_chain(const VectorChain& chain, Batch batch, uint32_t round);
  void finish(Event* event);

  const Options options_;
  const size_t wake_interval_;  // freed entries between two looks for a launch that waits for room
  const uint32_t fork_generation_;
  bool is_inline_ = false;      // launching thread only
  uint64_t blocked_ticks_ = 0;  // likewise

  const std::unique_ptr<Runner> runner_;
  Ring<Entry> ring_;
  mutable Waiter work_;                   // the executor, for entries
  mutable std::atomic<uint64_t> due_{0};  // lazy: so many entries of all have to be executed now
  Waiter space_;                          // a launch for room; synchronize for the end
  // Entries executed when the executor last signalled an event. It touches neither runner nor recorder between then and
  // the next entry, so that a waiter of that event can begin inline at once, before the entry has left the ring.
  std::atomic<uint64_t> settled_{0};
  uint64_t executed_ = 0;  // executor only
  Thread thread_;          // last: it uses all of the above
};

}  // namespace asc
