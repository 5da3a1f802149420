// TreeSums: what the leaves that each row reaches in an ensemble of decision trees say of each target, added up.
#include "ops/trees.h"

#include "ops/infer.h"
#include "ops/type_rules.h"

namespace asc {
namespace {

void infer_tree_sums(InferContext& ctx) {
  check_rank(ctx, kTreeRows, 2);
  check_rank(ctx, kTreeNodes, 2);
  for (int i : {kTreeThresholds, kTreeRoots, kTreeTargets, kTreeWeights}) check_rank(ctx, i, 1);
  const Shape &x = ctx.input(kTreeRows), &nodes = ctx.input(kTreeNodes), &thresholds = ctx.input(kTreeThresholds);
  const Shape &targets = ctx.input(kTreeTargets), &weights = ctx.input(kTreeWeights);
  if (nodes[1] != kTreeNodeFields || nodes[0] != thresholds[0] || targets[0] != weights[0])
    ctx.fail(message("nodes ", nodes, ", thresholds ", thresholds, ", targets ", targets, " and weights ", weights,
                     "; expected [nodes, ", int64_t{kTreeNodeFields}, "], [nodes], [weights] and [weights]"));
  const int64_t count = ctx.attr("targets", 1);
  if (count < 1) ctx.fail(message("targets is ", count, "; expected 1 or more"));
  const Shape out{x[0], count};
  check_size(ctx, out);
  ctx.set_output(0, out);
}

DType tree_sums_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  for (size_t i : {kTreeRows, kTreeThresholds, kTreeWeights}) check_type(node, inputs, i, DType::kFloat32);
  for (size_t i : {kTreeNodes, kTreeRoots, kTreeTargets}) check_type(node, inputs, i, DType::kInt32);
  return DType::kFloat32;
}

}  // namespace

void register_tree_ops(OpRegistry& r) {
  r.add(OpDef("TreeSums", kTreeInputs, kTreeInputs, infer_tree_sums, tree_sums_type));
}

}  // namespace asc
