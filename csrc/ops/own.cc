#include "ops/own.h"

#include "ops/channels_last.h"
#include "ops/half.h"
#include "ops/quantized.h"

namespace asc {

const Op* find_own_op(std::string_view name) {
  static const Op* const kOps[] = {&conv_last_op(),
                                   &conv_transpose_last_op(),
                                   &pool_last_op(),
                                   &quantized_conv_op(),
                                   &quantized_matmul_op(),
                                   &byte_pool_op(),
                                   bfloat16_product_op("MatMul"),
                                   bfloat16_product_op("Gemm"),
                                   bfloat16_product_op("Conv")};
  for (const Op* op : kOps)
    if (op->name == name) return op;
  return nullptr;
}

}  // namespace asc
