// Normalisations that a model spells out (mean, differences, squares, root, quotient), found among the steps of a fused
// node and computed row by row.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/vec_table.h"
#include "ops/fused.h"

namespace asc::cpu {

// Layer normalisation of the last dimension, or its root-mean-square form.
struct FoundNorm {
  bool is_rms = false;
  ValueId x = kNoValue, scale = kNoValue, bias = kNoValue, epsilon = kNoValue;
  size_t last = 0;       // step that makes the result
  uint32_t members = 0;  // bit i: step i is part of it
};

// `shapes` of all values of the body, as infer_fused_steps gives them. No step is part of two.
std::vector<FoundNorm> find_norms(const FusedBody& body, const Shape* shapes);

// One of them as the launch needs it: indices in the launch's table, 0 for what is absent.
struct NormRows {
  uint32_t x = 0, scale = 0, bias = 0, epsilon = 0;
  bool is_rms = false;
  size_t rows = 0, n = 0;

  // Operands are `at(index)`, null for 0; `y` may be x itself.
  template <typename At>
  void run(const At& at, float* y) const {
    const auto in = [&](uint32_t i) { return static_cast<const float*>(at(i)); };
    if (is_rms)
      vec_table().rms_norm_rows(in(x), in(scale), y, rows, n, *in(epsilon));
    else
      vec_table().layer_norm_rows(in(x), in(scale), in(bias), y, rows, n, *in(epsilon));
  }
};

}  // namespace asc::cpu
