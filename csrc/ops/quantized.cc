#include "ops/quantized.h"

#include "ops/infer.h"
#include "ops/matmul.h"

namespace asc {
namespace {

DType first_type(const Node&, const std::vector<DType>& inputs, int) { return inputs[0]; }

// Scales and zero points: one number, of the weights also one for each output. The kernels rely on it.
void check_numbers(const InferContext& ctx, int64_t outputs) {
  for (int i = kQuantXZero; i < kQuantInputs; ++i) {
    if (!ctx.has_input(i)) continue;
    const int64_t count = ctx.input(i).num_elements();
    const bool is_by_output = i == kQuantWZero || i == kQuantScale || i == kQuantBias;
    if ((i != kQuantBias && count == 1) || (is_by_output && count == outputs)) continue;
    ctx.fail(message("a zero point, scale or bias has shape ", ctx.input(i), "; expected ",
                     is_by_output ? "one number for each of " + std::to_string(outputs) + " outputs" : "one number"));
  }
}

void infer_quantized_matmul(InferContext& ctx) {
  infer_matmul(ctx);
  const Shape& w = ctx.input(kQuantW);
  check_numbers(ctx, w.rank() > 1 ? w[w.rank() - 1] : 1);
}

void infer_quantized_conv(InferContext& ctx) {
  infer_conv_last(ctx);
  check_numbers(ctx, ctx.input(kQuantW)[0]);
}

}  // namespace

const Op& quantized_conv_op() {
  static const Op kOp = OpDef("QuantizedConv", 2, kQuantInputs, infer_quantized_conv, first_type);
  return kOp;
}

const Op& quantized_matmul_op() {
  static const Op kOp = OpDef("QuantizedMatMul", 2, kQuantInputs, infer_quantized_matmul, first_type);
  return kOp;
}

const Op& byte_pool_op() {
  static const Op kOp = OpDef("BytePool", 1, 5, infer_pool_last, first_type);
  return kOp;
}

}  // namespace asc
