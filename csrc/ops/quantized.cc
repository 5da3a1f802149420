#include "ops/quantized.h"

#include "ops/infer.h"
#include "ops/matmul.h"

namespace asc {
namespace {

DType first_type(const Node&, const std::vector<DType>& inputs, int) { return inputs[0]; }

}  // namespace

const Op& quantized_conv_op() {
  static const Op kOp = OpDef("QuantizedConv", 2, kQuantInputs, infer_conv_last, first_type);
  return kOp;
}

const Op& quantized_matmul_op() {
  static const Op kOp = OpDef("QuantizedMatMul", 2, kQuantInputs, infer_matmul, first_type);
  return kOp;
}

const Op& byte_pool_op() {
  static const Op kOp = OpDef("BytePool", 1, 5, infer_pool_last, first_type);
  return kOp;
}

}  // namespace asc
