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

// Rows of queries that read the same keys and values: those of a head, or, where each head has one, of several heads at
// equal distances.
struct Unit {
  AttentionHead at;
  int64_t rows = 0, q_row = 0, out_row = 0;
  int64_t mask_row[kMaxMasks] = {};
};

// Units whose scores fit the cache together. Between writing scores and reading them lies the work on the other units,
// for a processor stalls where it reads at once, in other pieces, what it wrote.
struct Batch {
  size_t begin = 0, end = 0;
};

struct AttentionTiling : Tiling, AttentionForm {
  explicit AttentionTiling(const AttentionForm& form) : AttentionForm(form) {}
  std::vector<Unit> units;
  std::vector<Batch> batches;
  Way way = Way::kDots;
  bool packs_keys = false, packs_values = false, mixes_by_rows = true;
  int threads = 1;
  int64_t block = 1;  // rows of a unit at a time
  size_t weights_offset = 0, keys_offset = 0, values_offset = 0, part_bytes = 0;
  const SmallGemm* gemm = &small_gemm();
  const VecTable* vec = &vec_table();

  size_t bytes() const override {
    return sizeof(AttentionTiling) + units.capacity() * sizeof(Unit) + batches.capacity() * sizeof(Batch);
  }
};

// One part of a launch: the operands, and memory of its own.
struct Pass {
  const AttentionTiling& t;
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  const float* mask[kMaxMasks] = {};
  float* out = nullptr;
  float alpha = 1, nan_value = 0;
  float *scores = nullptr, *weights = nullptr, *packed_keys = nullptr, *packed_values = nullptr;

  const float *keys_from = nullptr, *values_from = nullptr;  // what was packed last

  void run(const Batch& batch) {
    const Unit* const units = t.units.data();
    if (batch.end - batch.begin == 1) return run_blocks(units[batch.begin]);
    float* to = scores;
    for (size_t i = batch.begin; i < batch.end; to += units[i++].rows * t.keys) score(units[i], to);
    weigh((to - scores) / t.keys);
    const float* from = weights;
    for (size_t i = batch.begin; i < batch.end; from += units[i++].rows * t.keys) mix(units[i], from);
  }

  void run_blocks(Unit unit) {
    const int64_t end = unit.rows;
    for (int64_t row = 0; row < end; row += unit.rows) {
      unit.rows = std::min(t.block, end - row);
      score(unit, scores);
      weigh(unit.rows);
      mix(unit, weights);
      unit.at.q += unit.rows * unit.q_row;
      unit.at.out += unit.rows * unit.out_row;
      for (int m = 0; m < t.masks; ++m) unit.at.mask[m] += unit.rows * unit.mask_row[m];
    }
  }

  void weigh(int64_t rows) const {
    t.vec->softmax_rows(scores, weights, static_cast<size_t>(rows), static_cast<size_t>(t.keys));
    if (t.guards_nan) replace_nan(rows);
  }

  void mix(const Unit& unit, const float* from) {
    const float* values = v + unit.at.v;
    if (t.packs_values) values = pack_values(values);
    const int64_t v_row = t.packs_values ? t.value_width : t.v_row;
    if (!t.mixes_by_rows) {
      gemm(false, false, unit.rows, t.value_width, t.keys, 1.0f, from, t.keys, values, v_row, 0.0f, out + unit.at.out,
           std::max(unit.out_row, t.value_width));
      return;
    }
    SmallGemmArgs s;
    s.m = unit.rows, s.n = t.value_width, s.k = t.keys;
    s.a = from, s.a_row = t.keys;
    s.b = values, s.ldb = v_row;
    s.c = out + unit.at.out, s.ldc = unit.out_row;
    t.gemm->rows(s);
  }

  void score(const Unit& unit, float* to) {
    const float* keys = k + unit.at.k;
    if (t.packs_keys) keys = pack_keys(keys);
    SmallGemmArgs s;
    s.m = unit.rows, s.n = t.keys, s.k = t.width;
    s.a = q + unit.at.q, s.a_row = unit.q_row;
    s.b = keys, s.ldb = t.way == Way::kDots ? t.k_row : t.packs_keys ? t.keys : t.k_column;
    s.c = to, s.ldc = t.keys;
    s.alpha = alpha;
    int added = 0;
    if (t.masks > 0 && t.way != Way::kBlas) {
      s.add = mask[0] + unit.at.mask[0], s.add_row = unit.mask_row[0];
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
        gemm(false, by_row, unit.rows, t.keys, t.width, alpha, s.a, std::max(unit.q_row, t.width), keys,
             std::max(by_row ? t.k_row : t.k_column, by_row ? t.width : t.keys), 0.0f, to, t.keys);
        break;
      }
    }
    for (; added < t.masks; ++added)
      for (int64_t i = 0; i < unit.rows; ++i) {
        float* row = to + i * t.keys;
        const float* add = mask[added] + unit.at.mask[added] + i * unit.mask_row[added];
        t.vec->add.vv(row, add, row, static_cast<size_t>(t.keys));
      }
  }

  // A softmax is NaN in all elements or in none.
  void replace_nan(int64_t rows) const {
    for (int64_t i = 0; i < rows; ++i) {
      float* row = weights + i * t.keys;
      if (row[0] != row[0]) std::fill_n(row, t.keys, nan_value);
    }
  }

  const float* pack_keys(const float* keys) {
    if (keys != keys_from) {
      const int64_t panel = t.way == Way::kPanels ? kPanelColumns : t.keys;
      pack_panels(keys, t.k_column, t.k_row, t.width, t.keys, packed_keys, panel);
      keys_from = keys;
    }
    return packed_keys;
  }

  const float* pack_values(const float* values) {
    if (values != values_from) {
      for (int64_t j = 0; j < t.keys; ++j)
        std::memcpy(packed_values + j * t.value_width, values + j * t.v_row,
                    static_cast<size_t>(t.value_width) * sizeof(float));
      values_from = values;
    }
    return packed_values;
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
    own.weights = reinterpret_cast<float*>(part + t.weights_offset);
    own.packed_keys = reinterpret_cast<float*>(part + t.keys_offset);
    own.packed_values = reinterpret_cast<float*>(part + t.values_offset);
    const Part range = part_of(static_cast<int64_t>(t.batches.size()), 1, t.threads, i);
    for (int64_t b = range.begin; b < range.end; ++b) own.run(t.batches[static_cast<size_t>(b)]);
  });
  return Status::kOk;
}

// The distances from one head to the next, as those from row to row of a unit.
Unit distance(const AttentionHead& from, const AttentionHead& to) {
  Unit d;
  d.q_row = to.q - from.q;
  d.out_row = to.out - from.out;
  for (int m = 0; m < kMaxMasks; ++m) d.mask_row[m] = to.mask[m] - from.mask[m];
  return d;
}

bool has_equal_rows(const Unit& a, const Unit& b) {
  return a.q_row == b.q_row && a.out_row == b.out_row && std::equal(a.mask_row, a.mask_row + kMaxMasks, b.mask_row);
}

bool can_merge(const AttentionForm& f, const AttentionHead& a, const AttentionHead& b) {
  const Unit d = distance(a, b);
  bool fits = f.rows == 1 && a.k == b.k && a.v == b.v && d.q_row >= f.width && d.out_row >= f.value_width;
  for (int64_t m : d.mask_row) fits &= m >= 0;
  return fits;
}

void find_units(AttentionTiling* t, const std::vector<AttentionHead>& heads) {
  for (size_t i = 0; i < heads.size();) {
    Unit unit;
    size_t end = i + 1;
    if (end < heads.size() && can_merge(*t, heads[i], heads[end])) {
      unit = distance(heads[i], heads[end]);
      while (end < heads.size() && can_merge(*t, heads[i], heads[end]) &&
             has_equal_rows(unit, distance(heads[end - 1], heads[end])))
        ++end;
      unit.rows = static_cast<int64_t>(end - i);
    } else {
      unit.rows = t->rows, unit.q_row = t->q_row, unit.out_row = t->out_row;
      std::copy_n(t->mask_row, kMaxMasks, unit.mask_row);
    }
    unit.at = heads[i];
    t->units.push_back(unit);
    i = end;
  }
}

// Returns the scores that a part holds at a time.
int64_t find_batches(AttentionTiling* t) {
  constexpr int64_t kElements = int64_t{1} << 12;
  int64_t most = 0;
  for (size_t i = 0; i < t->units.size();) {
    Batch b{i, i + 1};
    int64_t rows = t->units[i].rows;
    while (b.end < t->units.size() && (rows + t->units[b.end].rows) * t->keys <= kElements)
      rows += t->units[b.end++].rows;
    most = std::max(most, b.end - b.begin == 1 ? std::min(rows, t->block) : rows);
    t->batches.push_back(b);
    i = b.end;
  }
  return most * t->keys;
}

// Measured: packing the keys pays from a few rows on, later where each key is long.
Way find_way(const AttentionTiling& t, int64_t rows) {
  constexpr int64_t kSmallMatrix = int64_t{1} << 14;
  const int64_t few_rows = t.width < 64 ? 2 : 4;
  if (t.k_column != 1) return prefers_rows(rows, t.keys, t.width) ? Way::kRows : Way::kBlas;
  if (rows <= few_rows) return Way::kDots;
  if (!prefers_panels(rows)) return Way::kBlas;
  return t.keys * t.width <= kSmallMatrix ? Way::kRows : Way::kPanels;
}

}  // namespace

std::shared_ptr<const Tiling> tile_attention(const TilingContext& ctx, const AttentionForm& form,
                                             const std::vector<AttentionHead>& heads) {
  constexpr int64_t kBlockElements = int64_t{1} << 15, kMinBlock = 8, kMaxBlock = 64;
  auto t = std::make_shared<AttentionTiling>(form);
  t->launch = launch_attention;
  t->implementation = form.rows == 1 ? "attention:decode" : "attention:blocks";
  t->block = std::clamp(kBlockElements / form.keys & ~int64_t{3}, kMinBlock, kMaxBlock);
  find_units(t.get(), heads);
  const int64_t rows = std::min(t->units.front().rows, t->block), scores = find_batches(t.get());
  t->way = find_way(*t, rows);
  t->packs_keys = form.k_column == 1 && (t->way == Way::kRows || t->way == Way::kPanels);
  t->mixes_by_rows = prefers_rows(rows, form.value_width, form.keys);
  t->packs_values = form.rows >= kMinBlock && form.v_row != form.value_width;
  const double each =
      2.0 * static_cast<double>(form.rows * form.keys) * static_cast<double>(form.width + form.value_width + 8);
  t->threads = std::min<int>(threads_for(ctx, each * static_cast<double>(heads.size())),
                             static_cast<int>(std::min<size_t>(t->batches.size(), 1024)));
  const auto bytes_of = [](int64_t count) { return round_up(static_cast<size_t>(count) * sizeof(float)); };
  // In place, a processor takes the masked end of a short row's store for the beginning of the next row.
  const bool is_apart = form.keys < 128 && form.keys % 16 != 0;
  t->weights_offset = is_apart ? bytes_of(scores) : 0;
  t->keys_offset = t->weights_offset + bytes_of(scores);
  t->values_offset = t->keys_offset + (t->packs_keys ? bytes_of(form.keys * form.width) : 0);
  t->part_bytes = t->values_offset + (t->packs_values ? bytes_of(form.keys * form.value_width) : 0);
  t->workspace_bytes = t->part_bytes * static_cast<size_t>(t->threads);
  return t;
}

}  // namespace asc::cpu
