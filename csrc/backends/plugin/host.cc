#include "backends/plugin/host.h"

#include <string>
#include <utility>

#include "backends/plugin/kernels.h"
#include "backends/plugin/ledger.h"
#include "profile/clock.h"

namespace asc {
namespace {

void run_task(asc_run run, const asc_task* task, void* const* table) {
  bool is_timed = false;
  if (!Ledger::instance().is_running(run, &is_timed)) return;
  if (!task || !task->kernel || !table) {
    Ledger::instance().fail(run, Event::kNoNode, Status::kFailed, "run_task without a task, a kernel or a table");
    return;
  }
  std::string error;
  const uint64_t start = now_ticks();
  const Status status = run_plugin_task(*task, table, error);
  Ledger::instance().add_span(run, task->node, start, now_ticks());
  if (__builtin_expect(status == Status::kOk, 1)) return;
  Ledger::instance().fail(run, task->node, status, error.empty() ? "out of memory" : error.c_str());
}

int is_stopped(asc_run run) { return Ledger::instance().is_running(run) ? 0 : 1; }

void fail(asc_run run, const asc_task* task, int status, const char* why) {
  Ledger::instance().fail(run, task ? task->node : Event::kNoNode, status_of(status), why);
}

void complete(asc_run run) { Ledger::instance().complete(run); }

}  // namespace

const asc_host& plugin_host() {
  static const asc_host host{ASC_DEVICE_VERSION, sizeof(asc_host), run_task, is_stopped, fail, complete};
  return host;
}

}  // namespace asc
