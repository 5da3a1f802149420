// A plan by one rule: in the lowest valley of the skyline, the block that starts next is one over the section with the
// least room. Quick, also for thousands of blocks, and the better the less room there is; it proves nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "schedule/memory_search.h"

namespace asc {

// Offsets by block, none overlapping; empty when `should_stop()`. `loads`: bytes by section. Of blocks over the same
// section the one of lower rank comes first. O(n log n + the sum of all looks at what may start in a valley).
std::vector<int64_t> plan_on_skyline(const std::vector<SearchedBlock>& blocks, const std::vector<int64_t>& loads,
                                     const std::vector<uint32_t>& rank, const std::function<bool()>& should_stop);

}  // namespace asc
