// Which runs plug-ins may still report on. A plug-in knows a run by number only, so that a number that is reported
// twice, too late or out of thin air is found out here, and touches nothing.
#pragma once

#include <ascendsched/device.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "backends/plugin/plugin.h"
#include "device/event.h"

namespace asc {

// One stream of a plug-in, as far as its runs are concerned. Guarded by the ledger, but for `current`, which is the
// launching thread's.
struct Account {
  Account(const Plugin& plugin, int64_t deadline_ns) : plugin(plugin), deadline_ns(deadline_ns) {}

  const Plugin& plugin;
  const int64_t deadline_ns;
  uint64_t number = 0;
  uint64_t next = 0;         // of its runs
  size_t recorded = 0;       // runs that are to be completed
  int64_t progress_ns = 0;   // when something last ended, or began to be waited for
  bool is_lost = false;      // it ran into its deadline, and may still use what it was given
  std::string fault;         // the first thing that it did against the rules
  Event* current = nullptr;  // what is being appended to, and its number
  uint64_t current_number = 0;
};

// One per process; thread-safe. What plug-ins reach never throws.
class Ledger {
 public:
  static Ledger& instance();  // a forked child has its own

  std::shared_ptr<Account> open_account(const Plugin& plugin, int64_t deadline_ns);
  void close_account(const Account& account);

  // --- launching thread ----------------------------------------------------------------------------------------
  // The number of the run that `event` completes. Nothing is locked where it is the run of the last call.
  uint64_t number_of(Account& account, Event* event);
  // From now on the plug-in may complete the run. Returns the number that does.
  uint64_t record(Account& account, Event* event);
  // Completes a recorded run with an error, unless it has been completed.
  void give_up(Account& account, uint64_t number, Status status, const std::string& why);
  void note_lost(Account& account, const std::string& why);

  // --- any thread ------------------------------------------------------------------------------------------------
  // Throws DeviceError with the first fault of the stream, if any.
  void require_sound(const Account& account);
  bool is_lost(const Account& account);
  bool is_idle(const Account& account);  // nothing recorded is to be completed
  // Gives up everything recorded where nothing has ended for the account's deadline.
  void check_deadline(Account& account);

  // --- for plug-ins ----------------------------------------------------------------------------------------------
  // False where the run failed, was cancelled or is not known. `is_timed`: a profile is recorded.
  bool is_running(asc_run run, bool* is_timed = nullptr) noexcept;
  // Adds the span of a task of a run, where it is known.
  void add_span(asc_run run, uint32_t node, uint64_t start_ticks, uint64_t end_ticks) noexcept;
  void fail(asc_run run, uint32_t node, Status status, const char* why) noexcept;
  void complete(asc_run run) noexcept;

 private:
  struct Entry {
    Event* event = nullptr;
    bool is_recorded = false;
    uint64_t tasks = 0;  // the number that the tasks of the run have, where it is recorded
  };

  Account* account_of(uint64_t number);
  void settle(Account& account, uint64_t number);
  static void note_fault(Account& account, const char* function, const std::string& what);

  std::mutex mutex_;
  uint64_t last_account_ = 0;
  std::unordered_map<uint64_t, std::shared_ptr<Account>> accounts_;
  std::unordered_map<uint64_t, Entry> entries_;
};

}  // namespace asc
