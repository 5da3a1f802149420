// A run of element-wise operators as one loop: rows of the result, in tiles that stay in the first-level cache, each
// going through all steps before the next one is touched.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/broadcast.h"
#include "backends/cpu/element_step.h"
#include "backends/cpu/parallel.h"

namespace asc::cpu {

// One operator on one row; one of unary, param and binary is set.
struct StepRow {
  VecTable::Unary unary = nullptr;
  VecTable::ParamUnary param = nullptr;
  VecTable::Binary binary = nullptr;
  uint32_t left = 0, right = 0;  // in the table
  size_t n = 0;
  float p = 0, q = 0;

  template <typename At>
  void run(const At& at, float* y) const {
    const auto* x = static_cast<const float*>(at(left));
    if (binary)
      binary(x, static_cast<const float*>(at(right)), y, n);
    else if (unary)
      unary(x, y, n);
    else
      param(x, y, n, p, q);
  }
};

class ElementProgram {
 public:
  static constexpr size_t kTile = 256;  // elements

  // Appends an operand tensor or one step; returns its number. All operands come before the first step. `inputs` holds
  // numbers, negative ones for absent inputs.
  int add_operand(uint32_t table_index, const Shape& shape, size_t element_bytes);
  int add_step(const ElementStep& step, const int* inputs, int count);
  // The last step makes the result, of floats or of bytes. All steps have its shape, which is not empty; operands
  // broadcast to it. Nothing is added afterwards. `threads`: that a run may use.
  void finish(const Shape& result, int threads);

  // Whether the program is only that, on one thread; then `row` does the same.
  bool is_step_row(StepRow* row) const;

  // Operands are `at(table_index)`; `y` may be an operand of the same shape as the result, but must not overlap others.
  template <typename At>
  void run(const At& at, void* y) const {
    const char* rows[kMaxOperands];
    for (size_t i = 0; i < operands_.size(); ++i) rows[i] = static_cast<const char*>(at(operands_[i]));
    run(static_cast<const char* const*>(rows), static_cast<char*>(y));
  }

  size_t bytes() const;

 private:
  static constexpr int kMaxOperands = 80, kMaxTemporaries = 40;

  enum class Form : uint8_t { kUnary, kParam, kBinary, kClip, kFromBytes, kToBytes };
  struct Step {
    Form form = Form::kUnary;
    int16_t in[3] = {-1, -1, -1};  // registers: operands, then temporaries
    int16_t out = -1;              // temporary; -1: the result
    VecTable::Unary unary = nullptr;
    VecTable::ParamUnary param = nullptr;
    VecTable::Binary binary = nullptr;
    float p = 0, q = 0;
    ElementStep source;
  };

  // How rows of an operand become a tile of several: they lie so already, are copied, or one element fills each.
  enum class Gather : char { kNone, kCopy, kFill };

  // Bytes from row to row of an operand, along the last outer dimension.
  int64_t last_stride(size_t operand) const {
    return strides_[operand * kMaxRank + static_cast<size_t>(outer_rank_ - 1)];
  }
  void choose_gathers();
  void choose_forms();
  void assign_temporaries();
  void run(const char* const* rows, char* y) const;  // `rows` by operand
  void run_part(const char* const* rows, char* y, Part rows_part, Part elements) const;
  void run_short_rows(const char* const* rows, char* y, Part rows_part) const;
  // Rows [first, first + rows) of a tile, from an operand.
  void gather(size_t operand, const char* from, int64_t rows, int64_t first, void* tile) const;
  // Positions of the outer dimensions, and of the operands, at a row; then `steps` rows on, at most to the end of the
  // last outer dimension.
  void seek(int64_t first, int64_t* position, const char** row) const;
  void advance(int64_t steps, int64_t* position, const char** row) const;
  inline void run_step(const Step& s, const void* const* registers, void* to, size_t n) const;
  static void convert(const Step& s, const void* const* registers, void* to, size_t n);

  std::vector<uint32_t> operands_;  // in the table
  std::vector<Shape> shapes_;       // of the operands, until finish
  std::vector<uint8_t> sizes_;      // of their elements, in bytes
  std::vector<Step> steps_;
  size_t row_size_ = 0, row_count_ = 0;
  size_t tile_size_ = kTile;            // of several rows
  size_t result_size_ = sizeof(float);  // of an element
  int outer_rank_ = 0, temporary_count_ = 0, threads_ = 1;
  int64_t outer_dims_[kMaxRank] = {};
  std::vector<int64_t> strides_;   // kMaxRank per operand, outer dimensions
  std::vector<char> is_repeated_;  // by operand: stands still inside a row (of short ones: inside a tile)
  std::vector<Gather> gathers_;    // by operand; empty where rows are not short
};

}  // namespace asc::cpu
