// Strided copies: every operator that only moves elements to other places (Transpose, Slice, Expand, Tile, …) is a
// nest of loops over one input and one output. The nest merges its loops as they are added; its tiling picks the
// inner kernel.
#pragma once

#include <memory>

#include "backends/cpu/loops.h"
#include "backends/cpu/tiling_base.h"

namespace asc::cpu {

class CopyNest {
 public:
  explicit CopyNest(size_t element_bytes) : element_bytes_(element_bytes) {}

  // Adds the next inner loop, strides in elements. Call in the order of the output, outermost first.
  void add(int64_t count, int64_t in_stride, int64_t out_stride);
  void set_in_offset(int64_t elements) { in_offset_ = elements * static_cast<int64_t>(element_bytes_); }

  std::shared_ptr<const Tiling> create_copy_tiling() const;

 private:
  int rank_ = 0;
  bool is_empty_ = false;
  size_t element_bytes_;
  int64_t in_offset_ = 0;
  Loop loops_[kMaxLoops];
};

}  // namespace asc::cpu
