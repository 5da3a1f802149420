// A memory problem without explicit conflicts as blocks over sections, which is what the searches work on.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/memory_problem.h"
#include "schedule/memory_search.h"

namespace asc {

// The buffers with bytes as blocks over sections: the times at which no other moment's set of live buffers is a
// superset. Sizes are in units of their greatest common divisor.
struct Sections {
  std::vector<uint32_t> buffer_of;    // by block
  std::vector<SearchedBlock> blocks;  // by first section
  int32_t count = 0;
  int64_t unit = 1;
};

Sections make_sections(const MemoryProblem& problem);

// The same with time running backwards. A plan of one is a plan of the other; a search may find it sooner in either.
Sections mirrored(const Sections& sections);

// Offsets by buffer, of `buffers`, from offsets by block: each falls onto what lies below it.
std::vector<int64_t> dropped_offsets(const Sections& sections, const std::vector<int64_t>& offsets, size_t buffers);

}  // namespace asc
