#include "sync/fork.h"

#include <pthread.h>

#include <atomic>

namespace asc {

namespace {

std::atomic<uint32_t> generation{0};

// Runs in the child before anything else does.
void count_fork() { generation.fetch_add(1, std::memory_order_relaxed); }

const int registered = pthread_atfork(nullptr, nullptr, &count_fork);

}  // namespace

uint32_t fork_generation() {
  static_cast<void>(registered);
  return generation.load(std::memory_order_relaxed);
}

}  // namespace asc
