// Offsets for buffers with known lifetimes in one arena. Problem → solve → offsets, and a separate validator that
// shares nothing with the solver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace asc {

// Alive in [first, last], both included; two buffers whose lifetimes meet must not overlap in memory.
struct Lifetime {
  uint32_t first = 0, last = 0;
  size_t bytes = 0;
};

struct MemoryPlan {
  std::vector<size_t> offsets;  // multiples of kAlignment, by buffer
  size_t total_bytes = 0;
};

// Greedy by size: the largest buffer first, each at the lowest gap that fits.
MemoryPlan plan_memory(const std::vector<Lifetime>& buffers);

// True when no two buffers that are alive together overlap and all end within total_bytes. Quadratic, obvious.
bool is_valid(const std::vector<Lifetime>& buffers, const MemoryPlan& plan);

}  // namespace asc
