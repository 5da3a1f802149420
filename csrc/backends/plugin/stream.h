// Streams and task chains of plug-ins.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "backends/plugin/ledger.h"
#include "backends/plugin/open_device.h"
#include "device/device.h"
#include "sync/thread.h"
#include "sync/waiter.h"

namespace asc {

class PluginChain final : public TaskChain {
 public:
  explicit PluginChain(std::shared_ptr<OpenDevice> device) : device_(std::move(device)) {}
  ~PluginChain() override;

  void add_task(const Task& task) override;
  void add_record(Point& point) override;
  void add_wait(const Point& point) override;
  void load() override;
  size_t task_count() const override { return tasks_.size(); }
  size_t bytes() const override { return sizeof(*this) + tasks_.capacity() * sizeof(asc_task); }
  // Null until it is loaded.
  void* handle() const { return handle_; }

 private:
  const std::shared_ptr<OpenDevice> device_;
  std::vector<asc_task> tasks_;
  void* handle_ = nullptr;
};

// A thread, "asc-watch", looks after the deadline. Never inline: a plug-in's work belongs to the plug-in.
//
// Once the plug-in broke a rule, launch, submit, copy and synchronize throw its first fault; record still completes.
// In a child process that was forked after construction every function throws DeviceError, and the destructor does
// nothing.
class PluginStream final : public Stream {
 public:
  PluginStream(std::shared_ptr<OpenDevice> device, int64_t deadline_ns);
  ~PluginStream() override;

  void launch(const Task& task, void* const* slots, Event* event, uint32_t sequence) override;
  // `chain` must be a loaded PluginChain of this device.
  void submit(const TaskChain& chain, void* const* slots, Event* event, uint32_t sequence, uint32_t round) override;
  void copy(void* to, const void* from, size_t bytes, Event* event) override;
  // Where the plug-in fails, `event` is signalled with the error, after what runs has ended.
  void record(Event* event) override;
  // An executable has one stream of a plug-in's device: these throw DeviceError.
  void record(Point& point, uint32_t round, Event* event) override;
  void wait(const Point& point, uint32_t round, Event* event) override;
  bool query() const override;
  void synchronize() override;
  bool begin_inline() override { return false; }
  void end_inline() override {}

 private:
  asc_run begin(Event* event, uint32_t sequence);
  void give_up(uint64_t number, const std::string& why);
  void watch() noexcept;

  const std::shared_ptr<OpenDevice> device_;
  const asc_device& functions_;
  const Plugin& plugin_;
  const std::shared_ptr<Account> account_;
  void* handle_ = nullptr;
  std::atomic<bool> has_unrecorded_{false};
  std::atomic<bool> is_closing_{false};
  Waiter closing_;
  Thread watch_;
};

}  // namespace asc
