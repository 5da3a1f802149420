// What follows a convolution in the same pass over its result.
#pragma once

#include <cstdint>

namespace asc::cpu {

// A function of one result, or an operation with an operand that has the result's shape.
struct ConvEnd {
  enum class Kind : uint8_t { kRelu, kClip, kSigmoid, kSwish, kHardSwish, kLinear, kAdd };
  Kind kind = Kind::kRelu;
  float alpha = 0, beta = 0;  // kRelu: slope below 0; kClip: bounds; kLinear: factor and shift
};

constexpr int kMostEndOperands = 4;

}  // namespace asc::cpu
