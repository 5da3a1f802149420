#include "backends/cpu/attention.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/blas.h"
#include "backends/cpu/panel_gemm.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/vec_table.h"

namespace asc::cpu {
namespace {

// How scores are computed.
enum class Way : uint8_t { kDots, kRows, kPanels, kBlas };

// Heads one after the other that read the same keys and values. With one row each and equal distances they are the rows
// of a single product.
struct HeadGroup {
  size_t begin = 0, end = 0;
  bool is_merged = false;
  AttentionHead step;
};

struct AttentionTiling : Tiling, AttentionForm {
  explicit AttentionTiling(const AttentionForm& form) : AttentionForm(form) {}
  std::vector<AttentionHead> heads;
  std::vector<HeadGroup> groups;
  Way way = Way::kDots;
  bool packs_values = false, mixes_by_rows = true;
  int threads = 1;
  int64_t block = 1;  // rows at a time
  size_t keys_offset = 0, values_offset = 0, part_bytes = 0;
  const SmallGemm* gemm = &small_gemm();
  const VecTable* vec = &vec_table();

  size_t bytes() const override {
    return sizeof(AttentionTiling) + heads.capacity() * sizeof(AttentionHead) + groups.capacity() * sizeof(HeadGroup);
  }
};

// One part of a launch: the operands, and memory of its own.
struct Pass {
  const AttentionTiling& t;
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  const float* mask[kMaxMasks] = {};
  float* out = nullptr;
  float alpha = 1, nan_value = 0;
  float *scores = nullptr, *packed_keys = nullptr, *packed_values = nullptr;

  // Rows of heads that are `head` apart from the operands' beginnings.
  void run(const AttentionHead& head, int64_t rows, int64_t q_row, const int64_t* mask_row, int64_t out_row,
           const float* keys, const float* values) const {
    score(head, rows, q_row, mask_row, keys);
    t.vec->softmax_rows(scores, scores, static_cast<size_t>(rows), static_cast<size_t>(t.keys));
    if (t.guards_nan) replace_nan(rows);
    const int64_t v_row = t.packs_values ? t.value_width : t.v_row;
    if (!t.mixes_by_rows) {
      gemm(false, false, rows, t.value_width, t.keys, 1.0f, scores, t.keys, values, v_row, 0.0f, out + head.out,
           out_row);
      return;
    }
    SmallGemmArgs mix;
    mix.m = rows, mix.n = t.value_width, mix.k = t.keys;
    mix.a = scores, mix.a_row = t.keys;
    mix.b = values, mix.ldb = v_row;
    mix.c = out + head.out, mix.ldc = out_row;
    t.gemm->rows(mix);
  }

  void score(const AttentionHead& head, int64_t rows, int64_t q_row, const int64_t* mask_row, const float* keys) const {
    SmallGemmArgs s;
    s.m = rows, s.n = t.keys, s.k = t.width;
    s.a = q + head.q, s.a_row = q_row;
    s.b = keys, s.ldb = t.way == Way::kRows ? t.k_column : t.k_row;
    s.c = scores, s.ldc = t.keys;
    s.alpha = alpha;
    int added = 0;
    if (t.masks > 0 && t.way != Way::kBlas) {
      s.add = mask[0] + head.mask[0], s.add_row = mask_row[0];
      added = 1;
    }
    switch (t.way) {
      case Way::kDots:
        t.gemm->dots(s);
        break;
      case Way::kRows:
        t.gemm->rows(s);
        break;
      case Way::kPanels:
        multiply_panels(s);
        break;
      case Way::kBlas: {
        const bool by_row = t.k_column == 1;
        gemm(false, by_row, rows, t.keys, t.width, alpha, s.a, std::max(q_row, t.width), keys,
             std::max(by_row ? t.k_row : t.k_column, by_row ? t.width : t.keys), 0.0f, scores, t.keys);
        break;
      }
    }
    for (; added < t.masks; ++added)
      for (int64_t i = 0; i < rows; ++i) {
        float* row = scores + i * t.keys;
        t.vec->add.vv(row, mask[added] + head.mask[added] + i * mask_row[added], row, static_cast<size_t>(t.keys));
      }
  }

  // A softmax is NaN in all elements or in none.
  void replace_nan(int64_t rows) const {
    for (int64_t i = 0; i < rows; ++i) {
      float* row = scores + i * t.keys;
      if (row[0] != row[0]) std::fill_n(row, t.keys, nan_value);
    }
  }

  void run_group(const HeadGroup& g) const {
    const AttentionHead& first = t.heads[g.begin];
    const float *keys = k + first.k, *values = v + first.v;
    if (t.way == Way::kPanels) {
      pack_panels(keys, t.k_column, t.k_row, t.width, t.keys, packed_keys);
      keys = packed_keys;
    }
    if (t.packs_values) {
      for (int64_t j = 0; j < t.keys; ++j)
        std::memcpy(packed_values + j * t.value_width, values + j * t.v_row,
                    static_cast<size_t>(t.value_width) * sizeof(float));
      values = packed_values;
    }
    if (g.is_merged)
      return run(first, static_cast<int64_t>(g.end - g.begin), g.step.q, g.step.mask, g.step.out, keys, values);
    for (size_t h = g.begin; h < g.end; ++h)
      for (int64_t row = 0; row < t.rows; row += t.block) {
        AttentionHead at = t.heads[h];
        at.q += row * t.q_row;
        at.out += row * t.out_row;
        for (int m = 0; m < t.masks; ++m) at.mask[m] += row * t.mask_row[m];
        run(at, std::min(t.block, t.rows - row), t.q_row, t.mask_row, t.out_row, keys, values);
      }
  }
};

Status launch_attention(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const AttentionTiling*>(task.tiling);
  Pass pass{t};
  pass.q = task.input<float>(slots, 0);
  pass.k = task.input<float>(slots, 1);
  pass.v = task.input<float>(slots, 2);
  int next = 3;
  for (int m = 0; m < t.masks; ++m) pass.mask[m] = task.input<float>(slots, next++);
  for (int f = 0; f < t.factors; ++f) {
    const float factor = *task.input<float>(slots, next++);
    pass.alpha = t.divides[f] ? pass.alpha / factor : pass.alpha * factor;
  }
  if (t.guards_nan) pass.nan_value = *task.input<float>(slots, next);
  pass.out = task.output<float>(slots, 0);
  char* const memory = static_cast<char*>(task.workspace(slots));
  parallel_for(t.threads, t.threads, [&](int64_t i) {
    Pass own = pass;
    char* const part = memory + static_cast<size_t>(i) * t.part_bytes;
    own.scores = reinterpret_cast<float*>(part);
    own.packed_keys = reinterpret_cast<float*>(part + t.keys_offset);
    own.packed_values = reinterpret_cast<float*>(part + t.values_offset);
    const Part range = part_of(static_cast<int64_t>(t.groups.size()), 1, t.threads, i);
    for (int64_t g = range.begin; g < range.end; ++g) own.run_group(t.groups[static_cast<size_t>(g)]);
  });
  return Status::kOk;
}

AttentionHead difference(const AttentionHead& a, const AttentionHead& b) {
  AttentionHead d;
  d.q = a.q - b.q, d.out = a.out - b.out;
  for (int m = 0; m < kMaxMasks; ++m) d.mask[m] = a.mask[m] - b.mask[m];
  return d;
}

bool is_equal(const AttentionHead& a, const AttentionHead& b) {
  return a.q == b.q && a.out == b.out && std::equal(a.mask, a.mask + kMaxMasks, b.mask);
}

bool can_merge(const AttentionTiling& t, const AttentionHead& step) {
  bool is_forward = t.rows == 1 && step.q >= t.width && step.out >= t.value_width;
  for (int64_t m : step.mask) is_forward &= m >= 0;
  return is_forward;
}

void find_groups(AttentionTiling* t) {
  const std::vector<AttentionHead>& h = t->heads;
  for (size_t i = 0; i < h.size();) {
    HeadGroup g{i, i + 1, false, {}};
    if (g.end < h.size()) g.step = difference(h[i + 1], h[i]);
    const bool merges = can_merge(*t, g.step);
    while (g.end < h.size() && h[g.end].k == h[i].k && h[g.end].v == h[i].v &&
           (!merges || is_equal(difference(h[g.end], h[g.end - 1]), g.step)))
      ++g.end;
    g.is_merged = merges && g.end - g.begin > 1;
    t->groups.push_back(g);
    i = g.end;
  }
}

// The rows of a product, as the choice of its kernel sees them.
int64_t rows_of(const AttentionTiling& t) {
  if (t.rows > 1) return std::min(t.rows, t.block);
  return t.groups.front().is_merged ? static_cast<int64_t>(t.groups.front().end - t.groups.front().begin) : 1;
}

// Measured: packing the keys pays from a few rows on.
Way find_way(const AttentionTiling& t, int64_t rows) {
  constexpr int64_t kFewRows = 4;
  if (t.k_column != 1) return prefers_rows(rows, t.keys, t.width) ? Way::kRows : Way::kBlas;
  if (rows <= kFewRows) return Way::kDots;
  return prefers_panels(rows) ? Way::kPanels : Way::kBlas;
}

}  // namespace

std::shared_ptr<const Tiling> tile_attention(const TilingContext& ctx, const AttentionForm& form,
                                             std::vector<AttentionHead> heads) {
  constexpr int64_t kBlockElements = int64_t{1} << 15, kMinBlock = 8, kMaxBlock = 64;
  auto t = std::make_shared<AttentionTiling>(form);
  t->launch = launch_attention;
  t->implementation = form.rows == 1 ? "attention:decode" : "attention:blocks";
  t->heads = std::move(heads);
  find_groups(t.get());
  t->block = std::clamp(kBlockElements / form.keys & ~int64_t{3}, kMinBlock, kMaxBlock);
  const int64_t rows = rows_of(*t);
  t->way = find_way(*t, rows);
  t->mixes_by_rows = prefers_rows(rows, form.value_width, form.keys);
  t->packs_values = form.rows >= kMinBlock && form.v_row != form.value_width;
  const auto total = static_cast<double>(t->heads.size()) * static_cast<double>(form.rows * form.keys);
  t->threads = std::min<int>(threads_for(ctx, 2.0 * total * static_cast<double>(form.width + form.value_width + 8)),
                             static_cast<int>(std::min<size_t>(t->groups.size(), 1024)));
  int64_t most = std::min(t->block, form.rows);
  for (const HeadGroup& g : t->groups)
    if (g.is_merged) most = std::max(most, static_cast<int64_t>(g.end - g.begin));
  const auto bytes_of = [](int64_t count) { return round_up(static_cast<size_t>(count) * sizeof(float)); };
  t->keys_offset = bytes_of(most * form.keys);
  t->values_offset = t->keys_offset + (t->way == Way::kPanels ? bytes_of(form.keys * form.width) : 0);
  t->part_bytes = t->values_offset + (t->packs_values ? bytes_of(form.keys * form.value_width) : 0);
  t->workspace_bytes = t->part_bytes * static_cast<size_t>(t->threads);
  return t;
}

}  // namespace asc::cpu
