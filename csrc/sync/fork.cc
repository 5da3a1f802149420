#include "sync/fork.h"

#include <pthread.h>

namespace asc {

std::atomic<uint32_t> detail::generation{0};

namespace {

// Runs in the child before anything else does.
void count_fork() { detail::generation.fetch_add(1, std::memory_order_relaxed); }

[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, &count_fork);

}  // namespace

}  // namespace asc
