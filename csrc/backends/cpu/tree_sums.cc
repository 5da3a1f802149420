// TreeSums (ops/trees.h). A way through a tree is a chain of dependent loads that no processor foretells: eight are
// followed abreast, of eight rows through one tree, or where rows are few, of one row through eight trees.
#include <algorithm>
#include <atomic>

#include "backends/cpu/parallel.h"
#include "backends/cpu/product.h"
#include "backends/cpu/tiling_base.h"
#include "ops/trees.h"

namespace asc::cpu {
namespace {

struct TreeSums : TilingOf<TreeSums> {
  int64_t rows = 0, features = 0, nodes = 0, trees = 0, weights = 0, targets = 0;
  int threads = 1;
};

struct Tables {
  const TreeNode* nodes;
  const float* thresholds;
  const int32_t *roots, *targets;
  const float* weights;
};

// All tests but the one that most trees are made of.
[[gnu::noinline]] bool passes_other(int32_t test, float x, float threshold) {
  if (x != x) return (test & kNanIsYes) != 0 || (test & ~kNanIsYes) == kUnequal;
  switch (test & ~kNanIsYes) {
    case kAtMost:
      return x <= threshold;
    case kLess:
      return x < threshold;
    case kAtLeast:
      return x >= threshold;
    case kMore:
      return x > threshold;
    case kEqual:
      return x == threshold;
    default:
      return x != threshold;
  }
}

[[gnu::always_inline]] inline bool passes(int32_t test, float x, float threshold) {
  return test == kAtMost ? x <= threshold : passes_other(test, x, threshold);
}

// From the nodes `at`, one per row of `rows`, to the leaves. False where the tables point outside of themselves or
// backwards. A leaf stays where it is, without a branch.
template <int kWays>
bool find_leaves(const TreeSums& t, const Tables& tables, const float* const* rows, int32_t* at) {
  const auto nodes = static_cast<uint64_t>(t.nodes), features = static_cast<uint64_t>(t.features);
  for (int k = 0; k < kWays; ++k)
    if (static_cast<uint64_t>(at[k]) >= nodes) return false;
  for (int32_t moved = 1; moved != 0;) {
    moved = 0;
    for (int k = 0; k < kWays; ++k) {
      const TreeNode& node = tables.nodes[at[k]];
      const int32_t is_leaf = node.feature >> 31;  // all bits, or none
      const auto feature = static_cast<uint64_t>(node.feature & ~is_leaf);
      if (feature >= features) return false;
      const int32_t next = node.next[passes(node.test, rows[k][feature], tables.thresholds[at[k]]) ? 0 : 1];
      const int32_t to = (at[k] & is_leaf) | (next & ~is_leaf);
      if (to < at[k] || static_cast<uint64_t>(to) >= nodes) return false;
      moved |= to ^ at[k];
      at[k] = to;
    }
  }
  return true;
}

bool add_leaf(const TreeSums& t, const Tables& tables, const TreeNode& leaf, float* sums) {
  if (leaf.feature >= 0 || leaf.next[0] < 0 || leaf.next[1] > t.weights) return false;
  for (int64_t i = leaf.next[0]; i < leaf.next[1]; ++i) {
    const int32_t target = tables.targets[i];
    if (target < 0 || target >= t.targets) return false;
    sums[target] += tables.weights[i];
  }
  return true;
}

// The ways of some rows through one tree, or of one row through some trees, whose sums are added in their order.
template <int kWays>
bool follow(const TreeSums& t, const Tables& tables, int64_t tree, int64_t tree_step, int64_t row, int64_t row_step,
            const float* x, float* y) {
  const float* rows[kWays];
  int32_t at[kWays];
  for (int k = 0; k < kWays; ++k) {
    rows[k] = x + (row + k * row_step) * t.features;
    at[k] = tables.roots[tree + k * tree_step];
  }
  if (!find_leaves<kWays>(t, tables, rows, at)) return false;
  for (int k = 0; k < kWays; ++k)
    if (!add_leaf(t, tables, tables.nodes[at[k]], y + (row + k * row_step) * t.targets)) return false;
  return true;
}

bool add_rows(const TreeSums& t, const Tables& tables, int64_t begin, int64_t end, const float* x, float* y) {
  constexpr int kWays = 8;
  if (end - begin < kWays) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t tree = 0;
      for (; tree + kWays <= t.trees; tree += kWays)
        if (!follow<kWays>(t, tables, tree, 1, i, 0, x, y)) return false;
      for (; tree < t.trees; ++tree)
        if (!follow<1>(t, tables, tree, 1, i, 0, x, y)) return false;
    }
    return true;
  }
  for (int64_t tree = 0; tree < t.trees; ++tree) {
    int64_t i = begin;
    for (; i + kWays <= end; i += kWays)
      if (!follow<kWays>(t, tables, tree, 0, i, 1, x, y)) return false;
    for (; i < end; ++i)
      if (!follow<1>(t, tables, tree, 0, i, 1, x, y)) return false;
  }
  return true;
}

Status launch_tree_sums(const Task& task, void* const* slots, Worker& worker) {
  constexpr int64_t kBlock = 64;  // rows
  const auto& t = *static_cast<const TreeSums*>(task.tiling);
  const Tables tables{static_cast<const TreeNode*>(task.input<void>(slots, kTreeNodes)),
                      task.input<float>(slots, kTreeThresholds), task.input<int32_t>(slots, kTreeRoots),
                      task.input<int32_t>(slots, kTreeTargets), task.input<float>(slots, kTreeWeights)};
  const float* x = task.input<float>(slots, kTreeRows);
  float* y = task.output<float>(slots, 0);
  std::fill_n(y, t.rows * t.targets, 0.0f);
  std::atomic<bool> fits{true};
  parallel_for(t.threads, (t.rows + kBlock - 1) / kBlock, [&](int64_t block) {
    const int64_t begin = block * kBlock, end = std::min(begin + kBlock, t.rows);
    if (!add_rows(t, tables, begin, end, x, y)) fits = false;
  });
  if (fits) return Status::kOk;
  return worker.fail(Status::kOutOfRange,
                     "[TreeSums] a tree leads outside of its tables, or reads a feature that rows of " +
                         std::to_string(t.features) + " lack; check the model and its input");
}

std::shared_ptr<const Tiling> tile_tree_sums(const TilingContext& ctx) {
  constexpr double kWay = 50;  // operations that take as long as the way of a row through a tree
  if (count_of(ctx.output(0)) == 0) return create_empty_tiling();
  auto t = create_tiling<TreeSums>(launch_tree_sums, "trees");
  t->rows = ctx.input(kTreeRows)[0];
  t->features = ctx.input(kTreeRows)[1];
  t->nodes = ctx.input(kTreeNodes)[0];
  t->trees = ctx.input(kTreeRoots)[0];
  t->weights = ctx.input(kTreeWeights)[0];
  t->targets = ctx.output(0)[1];
  t->threads = threads_for(ctx, kWay * static_cast<double>(t->rows) * static_cast<double>(t->trees));
  return t;
}

}  // namespace

void register_tree_sums(KernelRegistry& registry) { registry.add("TreeSums", DType::kFloat32, tile_tree_sums); }

}  // namespace asc::cpu
