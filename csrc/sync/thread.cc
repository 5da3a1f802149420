#include "sync/thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include <string>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "sync/fork.h"

namespace asc {

namespace {

void set_name(const char* name) {
#if defined(__APPLE__)
  pthread_setname_np(name);
#else
  pthread_setname_np(pthread_self(), name);
#endif
}

// All signals but those that a faulty instruction of this very thread raises.
void block_signals() {
  sigset_t set;
  sigfillset(&set);
  for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGPROF}) sigdelset(&set, s);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

}  // namespace

void Thread::start(const char* name, std::function<void()> body) {
  generation_ = fork_generation();
  try {
    thread_ = std::make_unique<std::thread>([name = std::string(name), body = std::move(body)] {
      set_name(name.c_str());
      block_signals();
      body();
    });
  } catch (const std::system_error& e) {
    throw DeviceError(std::string("[thread] cannot start '") + name + "': " + e.what() +
                      "; use fewer executables or raise the process limit");
  }
}

void Thread::yield_to_others() {
#if defined(SCHED_BATCH)
  const sched_param none{};
  pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);  // where that is refused, it is as any other
#endif
}

void Thread::join() {
  if (!thread_) return;
  if (generation_ == fork_generation())
    thread_->join();
  else
    static_cast<void>(thread_.release());  // destroying a joinable std::thread ends the process: leak its handle
  thread_.reset();
}

int64_t Thread::cpu_ns() const {
#if defined(__linux__)
  clockid_t clock;
  timespec time;
  if (thread_ && generation_ == fork_generation() && pthread_getcpuclockid(thread_->native_handle(), &clock) == 0 &&
      clock_gettime(clock, &time) == 0)
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
#endif
  return 0;
}

}  // namespace asc
