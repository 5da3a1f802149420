// The shape rule that all matrix products share, and the geometry of weights in blocks.
#pragma once

#include "ops/op.h"

namespace asc {

// [..., m, k] x [..., k, n], leading dimensions broadcast; a vector operand is a row (left) or a column (right) whose
// extra dimension is dropped from the result.
void infer_matmul(InferContext& ctx);

// Of MatMulNBits: A [..., k] times the transposed matrix [n, k] of codes of `bits` bits, each less a zero point and
// times a scale that every `block` codes along k share.
enum NBitsInput : int { kNBitsA, kNBitsCodes, kNBitsScales, kNBitsZeros, kNBitsGroups, kNBitsBias };
struct NBitsWeights {
  int64_t k = 0, n = 0, bits = 4, block = 0;
  int64_t blocks() const { return (k + block - 1) / block; }  // of a row
  int64_t block_bytes() const { return block * bits / 8; }
  int64_t zero_bytes() const { return (blocks() * bits + 7) / 8; }  // of a row's zero points, where they are codes too
  float default_zero() const { return static_cast<float>(int64_t{1} << (bits - 1)); }
};

// From the attributes; throws GraphError where they, or the shapes of codes, scales, zero points and bias, do not fit.
NBitsWeights read_nbits_weights(const ShapeContext& ctx);

}  // namespace asc
