// Products with a packed right-hand matrix: panels of 64 columns, each contiguous. One packing serves any number of
// rows, and large matrices lose nothing to the distance between the lines of a row-major one.
#pragma once

#include <cstdint>

#include "backends/cpu/small_gemm.h"

namespace asc::cpu {

constexpr int64_t kPanelColumns = 64;

// Packs b[k, n] into k * n elements; b(p, j) = b[p * row_stride + j * column_stride]. Panels of n columns are a plain
// matrix.
void pack_panels(const float* b, int64_t row_stride, int64_t column_stride, int64_t k, int64_t n, float* to,
                 int64_t panel = kPanelColumns);

// c = alpha * a·b + beta * add as SmallGemm::rows, where args.b is packed; args.ldb is not read. `backwards`: from the
// last panel to the first.
void multiply_panels(const SmallGemmArgs& args, bool backwards = false);

// Whether packed panels are the quickest way for m rows on one thread.
bool prefers_panels(int64_t m);

// Identifies the layout for Tiling::packed_layout; `transposed`: of the constant that is packed.
uint64_t panel_layout(int64_t k, int64_t n, bool transposed);

}  // namespace asc::cpu
