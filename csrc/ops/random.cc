// Operators whose results are other numbers at every run.
#include "ops/infer.h"
#include "ops/type_rules.h"

namespace asc {
namespace {

DType float_for_any(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  return DType::kFloat32;
}

}  // namespace

// Random numbers of the shape of input 0, of which nothing else is read; float32 always, as importers convert. With a
// `seed` they are the same at every run.
void register_random_ops(OpRegistry& r) {
  r.add(OpDef("RandomUniformLike", 1, 1, infer_same_shape, float_for_any).random());
  r.add(OpDef("RandomNormalLike", 1, 1, infer_same_shape, float_for_any).random());
}

}  // namespace asc
