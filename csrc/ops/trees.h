// Ensembles of decision trees, as tables: what TreeSums reads.
#pragma once

#include <cstdint>

#include "ops/op.h"

namespace asc {

// Rows [n, features], nodes [nodes, 4] and their thresholds [nodes], the root of each tree, and for each weight of a
// leaf the target that it is added to.
enum TreeInput : int { kTreeRows, kTreeNodes, kTreeThresholds, kTreeRoots, kTreeTargets, kTreeWeights, kTreeInputs };
constexpr int kTreeNodeFields = 4;

// A node: where `feature` of the row compares with the threshold as `test` says, the row goes on at node next[0],
// otherwise at node next[1]. Both stand behind their parent, so that every way ends. A leaf has a negative feature, and
// the weights from next[0] up to next[1].
struct TreeNode {
  int32_t feature, test, next[2];
};

// How a number compares with the threshold; with kNanIsYes added, NaN compares as if it did.
enum TreeTest : int32_t { kAtMost, kLess, kAtLeast, kMore, kEqual, kUnequal, kTreeTests, kNanIsYes = 8 };

}  // namespace asc
