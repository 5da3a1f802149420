// Products of float32 values with constant bfloat16 weights, which keep the model's bytes. What they read is rounded to
// bfloat16 where that is quicker; sums, bias and result are float32. plan/half_products.cc makes them out of checked
// nodes. Models cannot name them: the registry does not know the operators.
#pragma once

#include <string_view>

#include "ops/op.h"

namespace asc {

// For MatMul, Gemm or Conv, whose operands, attributes and shapes it has; null for other operators.
const Op* bfloat16_product_op(std::string_view op);

// An attribute of a product in a saved graph: it was one of bfloat16, and may round what it reads.
constexpr char kReadsBFloat16[] = "reads_bfloat16";

}  // namespace asc
