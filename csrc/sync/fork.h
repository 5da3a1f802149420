// Detects fork(): threads do not survive it, so whatever owned one must refuse to work in the child.
#pragma once

#include <cstdint>

namespace asc {

// Number of forks between the first process and this one. An owner of threads remembers it and compares; that costs a
// load, where getpid() is a system call.
uint32_t fork_generation();

}  // namespace asc
