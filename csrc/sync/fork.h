// Detects fork(): threads do not survive it, so whatever owned one must refuse to work in the child.
#pragma once

#include <atomic>
#include <cstdint>

namespace asc {

namespace detail {
extern std::atomic<uint32_t> generation;  // written in a child, before anything else runs there
}

// Number of forks between the first process and this one. An owner of threads remembers it and compares; that costs a
// load, where getpid() is a system call.
inline uint32_t fork_generation() { return detail::generation.load(std::memory_order_relaxed); }

}  // namespace asc
