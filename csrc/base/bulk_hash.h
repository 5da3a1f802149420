// The hash of much data, such as files, at the speed of memory. It finds damage and changes that happen: one that lies
// within eight bytes always changes the state that is hashed in the end. It does not withstand somebody who makes a
// second text of the same hash.
#pragma once

#include <cstddef>
#include <cstdint>

namespace asc {

// The same on every CPU; lengths count, so that zeros behind a text change its hash. Any thread, any address.
uint64_t hash_bulk(const void* data, size_t bytes);

}  // namespace asc
