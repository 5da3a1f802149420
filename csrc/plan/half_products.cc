// Products whose weights are constants of bfloat16 read them as they are, instead of in float32: half the bytes, and
// the instructions for it where the CPU has them.
#include "ops/half.h"
#include "plan/byte_values.h"

namespace asc {

void keep_bfloat16_weights(LevelBuilder& b) {
  for (PlanNode& p : b.nodes) {
    const Op* op = bfloat16_product_op(p.node.op);
    const auto found = b.half_products.find(p.node.outputs[0]);
    if (!op || found == b.half_products.end() || p.node.inputs[1] != found->second.outputs[0]) continue;
    const ValueId wide = p.node.inputs[1];
    Node cast = found->second;
    const ValueId narrow = cast.inputs[0];
    Node product = p.node;
    product.attributes.set(kReadsBFloat16, int64_t{1});
    cast.name += "_of_" + product.name;
    cast.outputs[0] = product.inputs[1] =
        add_value(b, b.values[wide].name + "_of_" + product.name, DType::kFloat32, wide);
    p.parts = {std::move(cast), std::move(product)};
    p.op = op;
    p.node.op = op->name;
    p.node.inputs[1] = narrow;
    p.input_types[1] = DType::kBFloat16;
    p.constant_inputs |= 2;
  }
}

}  // namespace asc
