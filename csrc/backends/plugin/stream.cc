#include "backends/plugin/stream.h"

#include <algorithm>

#include "backends/plugin/kernels.h"

namespace asc {
namespace {

[[noreturn]] void throw_no_points() {
  throw DeviceError("[stream] devices of packages have one stream for each executable; compile with streams=1");
}

}  // namespace

// --- PluginChain -----------------------------------------------------------------------------------------------------

PluginChain::~PluginChain() {
  if (handle_ && device_->may_be_freed())
    device_->plugin().call_quietly(device_->functions().unload_chain, device_->handle(), handle_);
}

void PluginChain::add_task(const Task& task) {
  if (handle_) throw DeviceError("[chain.add_task] the chain is loaded; build a new one");
  tasks_.push_back(make_plugin_task(task));
}

void PluginChain::add_record(Point& /*point*/) { throw_no_points(); }
void PluginChain::add_wait(const Point& /*point*/) { throw_no_points(); }

void PluginChain::load() {
  device_->require_same_process();
  tasks_.shrink_to_fit();
  device_->plugin().call("load_chain", device_->functions().load_chain, device_->handle(),
                         static_cast<const asc_task*>(tasks_.data()), tasks_.size(), &handle_);
  if (!handle_) device_->plugin().fail("load_chain", "it gave no chain");
}

// --- PluginStream ----------------------------------------------------------------------------------------------------

PluginStream::PluginStream(std::shared_ptr<OpenDevice> device, int64_t deadline_ns)
    : device_(std::move(device)),
      functions_(device_->functions()),
      plugin_(device_->plugin()),
      account_(Ledger::instance().open_account(plugin_, deadline_ns)) {
  try {
    watch_.start("asc-watch", [this] { watch(); });
    plugin_.call("create_stream", functions_.create_stream, device_->handle(), &handle_);
    if (!handle_) plugin_.fail("create_stream", "it gave no stream");
  } catch (...) {
    is_closing_ = true;
    closing_.wake();
    watch_.join();
    Ledger::instance().close_account(*account_);
    throw;
  }
}

PluginStream::~PluginStream() {
  if (!device_->is_of_this_process()) return;  // the child has neither the thread nor the plug-in's
  try {
    synchronize();
  } catch (const Error&) {
    // Told where it happened.
  }
  is_closing_ = true;
  closing_.wake();
  watch_.join();
  if (device_->may_be_freed()) plugin_.call_quietly(functions_.destroy_stream, handle_);
  Ledger::instance().close_account(*account_);
}

asc_run PluginStream::begin(Event* event, uint32_t sequence) {
  device_->require_same_process();
  Ledger::instance().require_sound(*account_);
  has_unrecorded_ = true;
  return {Ledger::instance().number_of(*account_, event), sequence};
}

void PluginStream::launch(const Task& task, void* const* slots, Event* event, uint32_t sequence) {
  const asc_run run = begin(event, sequence);
  const asc_task entry = make_plugin_task(task);
  plugin_.call("launch", functions_.launch, handle_, &entry, slots, run);
}

void PluginStream::submit(const TaskChain& chain, void* const* slots, Event* event, uint32_t sequence,
                          uint32_t /*round*/) {
  const auto& loaded = static_cast<const PluginChain&>(chain);
  if (!loaded.handle()) throw DeviceError("[stream.submit] the chain is not loaded; call load() first");
  const asc_run run = begin(event, sequence);
  plugin_.call("submit", functions_.submit, handle_, loaded.handle(), slots, run);
}

void PluginStream::copy(void* to, const void* from, size_t bytes, Event* event) {
  const asc_run run = begin(event, 0);
  if (bytes) plugin_.call("copy", functions_.copy, handle_, to, from, bytes, run);
}

void PluginStream::record(Event* event) {
  device_->require_same_process();
  Ledger& ledger = Ledger::instance();
  const uint64_t number = ledger.record(*account_, event);
  has_unrecorded_ = false;
  if (ledger.is_lost(*account_)) return give_up(number, account_->fault);
  try {
    plugin_.call("record", functions_.record, handle_, asc_run{number, 0});
  } catch (const Error& e) {
    give_up(number, e.what());
  }
}

void PluginStream::record(Point& /*point*/, uint32_t /*round*/, Event* /*event*/) { throw_no_points(); }
void PluginStream::wait(const Point& /*point*/, uint32_t /*round*/, Event* /*event*/) { throw_no_points(); }

// What runs may use what the run holds, so it has to end before the run does; where it cannot be seen to end, what the
// run holds is never freed.
void PluginStream::give_up(uint64_t number, const std::string& why) {
  Ledger& ledger = Ledger::instance();
  Status status = Status::kFailed;
  try {
    if (ledger.is_lost(*account_)) throw DeviceError(why);
    plugin_.call("synchronize", functions_.synchronize, handle_);
  } catch (const Error&) {
    status = Status::kLost;
    ledger.note_lost(*account_, why);
    device_->note_lost();
  }
  ledger.give_up(*account_, number, status, why);
}

bool PluginStream::query() const {
  device_->require_same_process();
  return !has_unrecorded_ && Ledger::instance().is_idle(*account_);
}

void PluginStream::synchronize() {
  if (query()) return;
  Event reached;
  record(&reached);
  reached.wait(-1);
  Ledger::instance().require_sound(*account_);
  if (reached.status() != Status::kOk) throw DeviceError(reached.error());
}

void PluginStream::watch() noexcept {
  const int64_t interval_ns = std::max<int64_t>(account_->deadline_ns / 4, 1'000'000);
  while (!closing_.wait([this] { return is_closing_.load(); }, interval_ns)) {
    Ledger::instance().check_deadline(*account_);
    if (!Ledger::instance().is_lost(*account_)) continue;
    device_->note_lost();
    return;
  }
}

}  // namespace asc
