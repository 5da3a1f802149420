#include "ops/half.h"

#include <array>

#include "ops/infer.h"

namespace asc {
namespace {

DType float32_type(const Node&, const std::vector<DType>&, int) { return DType::kFloat32; }

// The shape rule of the operator itself.
Op product_like(const char* op) {
  const Op& plain = *OpRegistry::instance().find(op);
  return OpDef(std::string(op) + "BFloat16", plain.min_inputs, plain.max_inputs, plain.infer_shape, float32_type);
}

}  // namespace

const Op* bfloat16_product_op(std::string_view op) {
  static const std::array<Op, 3> kOps = {product_like("MatMul"), product_like("Gemm"), product_like("Conv")};
  if (op == "MatMul") return &kOps[0];
  if (op == "Gemm") return &kOps[1];
  return op == "Conv" ? &kOps[2] : nullptr;
}

}  // namespace asc
