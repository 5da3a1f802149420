// Attention in one launch: softmax(alpha * q·kᵀ + mask)·v for many heads, row block by row block, so that scores stay
// in the cache. Operands lie as they are: rows of any distance, keys by row or by column.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/tiling_base.h"

namespace asc::cpu {

constexpr int kMaxMasks = 2, kMaxFactors = 4;

// Inputs of a task: q, k, v, then masks, factors, and the number that stands for NaN among the weights.
constexpr size_t kMaxAttentionInputs = 3 + kMaxMasks + kMaxFactors + 1;

// Where one head's operands begin, in elements.
struct AttentionHead {
  int64_t q = 0, k = 0, v = 0, out = 0;
  int64_t mask[kMaxMasks] = {};
};

// The shapes that all heads share. Rows of queries, values and results are contiguous; so are those of masks.
struct AttentionForm {
  int64_t rows = 0, keys = 0, width = 0, value_width = 0;
  int64_t q_row = 0, v_row = 0, out_row = 0;
  int64_t k_row = 0, k_column = 0;  // from key to key, and from element to element of a key: one of them is 1
  int masks = 0, factors = 0;
  int64_t mask_row[kMaxMasks] = {};
  bool divides[kMaxFactors] = {};  // the factor's inverse scales the scores
  bool guards_nan = false;         // NaN in weights becomes the last operand
};

// `form` without empty extents; `heads` in the order of computation, at least one.
std::shared_ptr<const Tiling> tile_attention(const TilingContext& ctx, const AttentionForm& form,
                                             const std::vector<AttentionHead>& heads);

}  // namespace asc::cpu
