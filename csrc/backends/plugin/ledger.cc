#include "backends/plugin/ledger.h"

#include <atomic>
#include <vector>

#include "sync/fork.h"
#include "sync/park.h"

namespace asc {
namespace {

constexpr int kRunBits = 40;  // of a number; above them is its account's

}  // namespace

Ledger& Ledger::instance() {
  struct OfProcess {
    const uint32_t generation = fork_generation();
    Ledger ledger;
  };
  // A child starts afresh: another thread may have held the lock when it was forked. Never destroyed: threads of
  // plug-ins may outlive whatever is destroyed at exit.
  static std::atomic<OfProcess*> current{nullptr};
  OfProcess* found = current;
  while (!found || found->generation != fork_generation()) {
    auto fresh = std::make_unique<OfProcess>();
    if (current.compare_exchange_strong(found, fresh.get())) found = fresh.release();
  }
  return found->ledger;
}

std::shared_ptr<Account> Ledger::open_account(const Plugin& plugin, int64_t deadline_ns) {
  auto account = std::make_shared<Account>(plugin, deadline_ns);
  std::lock_guard<std::mutex> lock(mutex_);
  account->number = ++last_account_;
  accounts_[account->number] = account;
  return account;
}

void Ledger::close_account(const Account& account) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (account.current) entries_.erase(account.current_number);
  accounts_.erase(account.number);
}

// --- launching thread ------------------------------------------------------------------------------------------------

uint64_t Ledger::number_of(Account& account, Event* event) {
  if (account.current == event) return account.current_number;
  std::lock_guard<std::mutex> lock(mutex_);
  // The run before it was dropped without being recorded.
  if (account.current) entries_.erase(account.current_number);
  account.current = event;
  account.current_number = (account.number << kRunBits) | ++account.next;
  entries_[account.current_number] = {event, false, 0};
  return account.current_number;
}

// An event that nothing was launched into is a point in the middle of the current run. The number is a new one: that of
// the run's tasks completes nothing.
uint64_t Ledger::record(Account& account, Event* event) {
  std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t number = (account.number << kRunBits) | ++account.next;
  const bool ends_current = account.current == event;
  entries_[number] = {event, true, ends_current ? account.current_number : 0};
  if (ends_current) account.current = nullptr;
  if (account.recorded++ == 0) account.progress_ns = monotonic_ns();
  return number;
}

void Ledger::give_up(Account& account, uint64_t number, Status status, const std::string& why) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = entries_.find(number);
  if (found == entries_.end()) return;
  found->second.event->fail(Event::kNoNode, status, why);
  settle(account, number);
}

void Ledger::note_lost(Account& account, const std::string& why) {
  std::lock_guard<std::mutex> lock(mutex_);
  account.is_lost = true;
  if (account.fault.empty()) account.fault = why;
}

// --- any thread ------------------------------------------------------------------------------------------------------

void Ledger::require_sound(const Account& account) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!account.fault.empty()) throw DeviceError(account.fault);
}

bool Ledger::is_lost(const Account& account) {
  std::lock_guard<std::mutex> lock(mutex_);
  return account.is_lost;
}

bool Ledger::is_idle(const Account& account) {
  std::lock_guard<std::mutex> lock(mutex_);
  return account.recorded == 0;
}

void Ledger::check_deadline(Account& account) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (account.recorded == 0 || monotonic_ns() - account.progress_ns < account.deadline_ns) return;
  account.is_lost = true;
  note_fault(account, "record",
             "nothing has ended within its deadline of " + std::to_string(account.deadline_ns / 1'000'000) +
                 " ms: a run was never completed, or takes longer than the device said");
  std::vector<uint64_t> late;
  for (const auto& [number, entry] : entries_)
    if (entry.is_recorded && number >> kRunBits == account.number) late.push_back(number);
  for (uint64_t number : late) {
    entries_[number].event->fail(Event::kNoNode, Status::kLost, account.fault);
    settle(account, number);
  }
}

// --- for plug-ins ----------------------------------------------------------------------------------------------------

bool Ledger::is_running(asc_run run, bool* is_timed) noexcept {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = entries_.find(run.number);
  if (found == entries_.end() || found->second.event->has_failed()) return false;
  if (is_timed) *is_timed = found->second.event->recorder != nullptr;
  return true;
}

void Ledger::add_span(asc_run run, uint32_t node, uint64_t start_ticks, uint64_t end_ticks) noexcept {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = entries_.find(run.number);
  if (found == entries_.end()) return;
  Event& event = *found->second.event;
  if (Account* account = account_of(run.number)) account->progress_ns = monotonic_ns();
  if (event.recorder)
    event.recorder->device.add({start_ticks, end_ticks, event.run, static_cast<int32_t>(node),
                                static_cast<uint32_t>(run.entry), Stage::kKernel});
}

void Ledger::fail(asc_run run, uint32_t node, Status status, const char* why) noexcept {
  std::string text;
  try {
    text = why ? why : "the plug-in gave no reason";
  } catch (const std::bad_alloc&) {
    // No memory even for the text: the status alone has to do.
  }
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = entries_.find(run.number);
  if (found != entries_.end()) {
    found->second.event->fail(node, status, std::move(text));
  } else if (Account* account = account_of(run.number)) {
    note_fault(*account, "fail", "it reports on a run that has been completed: " + text);
  }
}

void Ledger::complete(asc_run run) noexcept {
  std::lock_guard<std::mutex> lock(mutex_);
  Account* account = account_of(run.number);
  if (!account) return;  // of a stream that is gone; nobody is left to be told
  const auto found = entries_.find(run.number);
  if (found == entries_.end()) {
    // What ran into its deadline may well end later.
    if (!account->is_lost) note_fault(*account, "complete", "it completed a run twice, or one that it never got");
  } else if (!found->second.is_recorded) {
    note_fault(*account, "complete", "it completed a run that is not recorded yet");
  } else {
    settle(*account, run.number);
  }
}

Account* Ledger::account_of(uint64_t number) {
  const auto found = accounts_.find(number >> kRunBits);
  return found == accounts_.end() ? nullptr : found->second.get();
}

void Ledger::settle(Account& account, uint64_t number) {
  const auto found = entries_.find(number);
  Event* event = found->second.event;
  const uint64_t tasks = found->second.tasks;
  entries_.erase(found);
  entries_.erase(tasks);
  --account.recorded;
  account.progress_ns = monotonic_ns();
  event->signal();  // whoever waits for it may destroy it now
}

void Ledger::note_fault(Account& account, const char* function, const std::string& what) {
  if (account.fault.empty()) account.fault = account.plugin.complaint(function, what);
}

}  // namespace asc
