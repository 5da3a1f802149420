// A step of an LSTM on weights of bytes, for one sequence: the product of the state and the cells, and beside them
// parts of a product of inputs, in one loop.
#pragma once

#include <cstdint>

#include "backends/cpu/byte_gemm.h"

namespace asc::cpu {

struct ByteLstmStep {
  // Of the state's bytes, one row, unsigned; `y` is not written. The matrix is whole, and each 64 of its columns are
  // the gates (input, output, forget, cell) of 16 units.
  ByteGemmArgs product;
  float* cell = nullptr;   // of all units, updated
  float* state = nullptr;  // of all units, written
};

// What is done while steps wait for their weights.
struct ByteLstmBeside {
  // Of unsigned bytes, up to ByteLstm::kRows of them, and a whole matrix; one zero point and one addend for all rows.
  // Its column_begin moves on behind the columns that are done.
  ByteGemmArgs product;
  // Weights that are read after these, [ahead, ahead_end): fetched into the second-level cache along with the
  // product's. Null: none.
  const char *ahead = nullptr, *ahead_end = nullptr;
};

struct ByteLstm {
  static constexpr int64_t kUnits = 16;  // whose gates lie side by side
  static constexpr int64_t kRows = 12;   // of a product beside steps, at most

  void (*step)(const ByteLstmStep& step, ByteLstmBeside& beside);
  void (*finish)(ByteLstmBeside& beside);  // the product, to its end
};

// Null: not on this CPU.
const ByteLstm* byte_lstm();

}  // namespace asc::cpu
