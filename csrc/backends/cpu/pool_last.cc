// Pooling of float32 tensors with channels last (ops/channels_last.h). The input lines that an output line sees are
// folded into one, position by position of the window's height and depth; then that line, with its padding, along its
// width.
#include <algorithm>
#include <limits>

#include "backends/cpu/nn.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/plain_window.h"
#include "backends/cpu/vec_table.h"
#include "ops/channels_last.h"

namespace asc::cpu {
namespace {

struct PoolLast : TilingOf<PoolLast> {
  PlainWindow window;
  int64_t batch = 0, channels = 0;
  bool is_average = false;
  std::vector<int64_t> counts[kWindowAxes];  // averages only: what each output of an axis counts
  int threads = 1;
  int64_t line = 0;  // positions of a padded line
  size_t line_bytes = 0;

  float identity() const { return is_average ? 0.0f : -std::numeric_limits<float>::infinity(); }
  VecTable::Binary fold() const { return is_average ? vec_table().add.vv : vec_table().max.vv; }
};

// Folds rows of n numbers into y; the first two meet without a copy.
class RowFold {
 public:
  RowFold(VecTable::Binary fold, float* y, size_t n) : fold_(fold), y_(y), n_(n) {}
  void add(const float* row) {
    if (++count_ == 1)
      first_ = row;
    else
      fold_(count_ == 2 ? first_ : y_, row, y_, n_);
  }
  void finish(float otherwise) const {
    if (count_ == 0) std::fill_n(y_, n_, otherwise);
    if (count_ == 1) std::copy_n(first_, n_, y_);
  }

 private:
  const VecTable::Binary fold_;
  float* const y_;
  const size_t n_;
  const float* first_ = nullptr;
  int64_t count_ = 0;
};

// A window over whole lines: halves meet until one position is left, so that calls are few and long where channels are
// few.
void fold_halves(const PoolLast& t, float* line, float* y) {
  int64_t left = t.window.kernel[2];
  for (; left > 2; left -= left / 2) {
    float* upper = line + (left - left / 2) * t.channels;
    t.fold()(line, upper, line, static_cast<size_t>(left / 2 * t.channels));
  }
  const auto n = static_cast<size_t>(t.channels);
  if (left == 2)
    t.fold()(line, line + n, y, n);
  else
    std::copy_n(line, n, y);
}

void fold_width(const PoolLast& t, float* padded, float* y) {
  const PlainWindow& w = t.window;
  if (w.output[2] == 1 && w.dilation[2] == 1 && w.pad_begin[2] == 0 && w.kernel[2] <= w.input[2])
    return fold_halves(t, padded, y);
  const int64_t outputs = w.stride[2] == 1 ? 1 : w.output[2];  // one after the other, or all at once
  const auto n = static_cast<size_t>(t.channels * (w.output[2] / outputs));
  for (int64_t x = 0; x < outputs; ++x) {
    RowFold folded(t.fold(), y + x * t.channels, n);
    for (int64_t k = 0; k < w.kernel[2]; ++k) folded.add(padded + (x * w.stride[2] + k * w.dilation[2]) * t.channels);
    folded.finish(t.identity());
  }
}

// Neighbours that count the same are divided at once.
void divide(const PoolLast& t, int64_t lines, float* y) {
  const std::vector<int64_t>& counts = t.counts[2];
  for (size_t from = 0, to = 0; from < counts.size(); from = to) {
    while (to < counts.size() && counts[to] == counts[from]) ++to;
    float* row = y + static_cast<int64_t>(from) * t.channels;
    const auto count = static_cast<float>(std::max<int64_t>(lines * counts[from], 1));
    vec_table().scale_shift(row, row, (to - from) * static_cast<size_t>(t.channels), 1.0f / count, 0.0f);
  }
}

Status launch_pool(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const PoolLast*>(task.tiling);
  const PlainWindow& w = t.window;
  const auto* x = task.input<float>(slots, 0);
  auto* y = task.output<float>(slots, 0);
  auto* workspace = static_cast<char*>(task.workspace(slots));
  const int64_t lines = w.output[0] * w.output[1], row = w.input[2] * t.channels;
  parallel_for(t.threads, t.threads, [&](int64_t part) {
    auto* padded = reinterpret_cast<float*>(workspace + static_cast<size_t>(part) * t.line_bytes);
    const int64_t behind = t.line - w.pad_begin[2] - w.input[2];
    std::fill_n(padded, w.pad_begin[2] * t.channels, t.identity());
    std::fill_n(padded + (t.line - behind) * t.channels, behind * t.channels, t.identity());
    const Part own = part_of(t.batch * lines, 1, t.threads, part);
    for (int64_t i = own.begin; i < own.end; ++i) {
      const float* image = x + i / lines * w.input_size() * t.channels;
      const int64_t out_z = i % lines / w.output[1], out_y = i % w.output[1];
      const IndexRange z = inside_kernel(w, 0, out_z), h = inside_kernel(w, 1, out_y);
      RowFold folded(t.fold(), padded + w.pad_begin[2] * t.channels, static_cast<size_t>(row));
      for (int64_t a = z.low; a < z.high; ++a)
        for (int64_t b = h.low; b < h.high; ++b)
          folded.add(image + (w.position(0, out_z, a) * w.input[1] + w.position(1, out_y, b)) * row);
      folded.finish(t.identity());
      float* to = y + i * w.output[2] * t.channels;
      fold_width(t, padded, to);
      if (t.is_average)
        divide(t, t.counts[0][static_cast<size_t>(out_z)] * t.counts[1][static_cast<size_t>(out_y)], to);
    }
  });
  return Status::kOk;
}

std::shared_ptr<const Tiling> tile_pool_last(const TilingContext& ctx) {
  constexpr double kFloatCost = 2;  // operations that take as long as one element of input
  if (count_of(ctx.output(0)) == 0) return create_empty_tiling();
  const Shape x = channels_first(ctx.input(0));
  auto t = create_tiling<PoolLast>(launch_pool, "rows of channels");
  PlainWindow& w = t->window = make_row_window(ctx, x);
  t->batch = x[0];
  t->channels = x[1];
  t->is_average = ctx.attributes().get_string("mode", "") != "max";
  if (w.output[2] == 1) w.stride[2] = 1;  // never taken
  for (int axis = 0; axis < kWindowAxes; ++axis) {
    if (t->is_average) t->counts[axis] = count_positions(w, axis, ctx.attr("count_include_pad", 0) != 0);
    // The only output of an axis sees nothing beyond the input.
    if (w.output[axis] == 1) w.kernel[axis] = std::max<int64_t>(inside_kernel(w, axis, 0).high, 1);
  }
  t->threads = threads_for(ctx, kFloatCost * static_cast<double>(count_of(ctx.input(0)) + count_of(ctx.output(0))));
  t->line =
      std::max(w.pad_begin[2] + w.input[2], (w.output[2] - 1) * w.stride[2] + (w.kernel[2] - 1) * w.dilation[2] + 1);
  t->line_bytes = round_up(static_cast<size_t>(t->line * t->channels) * sizeof(float));
  t->workspace_bytes = static_cast<size_t>(t->threads) * t->line_bytes;
  return t;
}

}  // namespace

void register_pool_last(KernelRegistry& registry) {
  registry.add(pool_last_op().name, DType::kFloat32, tile_pool_last);
}

}  // namespace asc::cpu
