// Convolution as matrix products. For a tile of output positions, the inputs that they see are unfolded into columns
// (im2col); the tile is small enough that its columns stay in the second-level cache.
#include <algorithm>

#include "backends/cpu/blas.h"
#include "backends/cpu/conv.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/small_gemm.h"
#include "backends/cpu/vec_table.h"

namespace asc::cpu {
namespace {

struct ColumnConv : TilingOf<ColumnConv> {
  ConvShape shape;
  int64_t tile = 0;  // output positions
  int threads = 1;
  int64_t row_parts = 1;  // of the outputs of a pointwise convolution
  int64_t tiles() const { return (shape.output_size() + tile - 1) / tile; }
};

constexpr int64_t kRowUnit = 4;  // of small_gemm

template <typename T>
void copy_strided(const T* from, int64_t stride, T* to, int64_t n) {
  if (stride == 1)
    std::copy(from, from + n, to);
  else
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
}

// The row of the column matrix for one channel (`plane`) and kernel position `at`, outputs [begin, end).
template <typename T>
void unfold_row(const ConvShape& s, const T* plane, const int64_t* at, int64_t begin, int64_t end, T* to) {
  const int64_t width = s.output[2];
  int64_t x = begin % width, y = begin / width % s.output[1], z = begin / (width * s.output[1]);
  const IndexRange full = inside_line(s, 0, width, at[2]);
  for (int64_t left = end - begin; left > 0;) {
    const int64_t outputs = std::min(width - x, left);
    const int64_t in_z = s.position(0, z, at[0]), in_y = s.position(1, y, at[1]);
    IndexRange r = {0, 0};
    if (s.is_inside(0, in_z) && s.is_inside(1, in_y)) r = outputs == width ? full : inside_line(s, x, outputs, at[2]);
    std::fill(to, to + r.low, T{0});
    if (r.low < r.high)
      copy_strided(plane + (in_z * s.input[1] + in_y) * s.input[2] + s.position(2, x + r.low, at[2]), s.stride[2],
                   to + r.low, r.high - r.low);
    std::fill(to + r.high, to + outputs, T{0});
    to += outputs;
    left -= outputs;
    x = 0;
    if (++y == s.output[1]) y = 0, ++z;
  }
}

template <typename T>
void unfold(const ConvShape& s, const T* image, int64_t begin, int64_t end, T* columns) {
  int64_t at[kWindowAxes];
  for (int64_t c = 0; c < s.group_channels(); ++c) {
    const T* plane = image + c * s.input_size();
    for (at[0] = 0; at[0] < s.kernel[0]; ++at[0])
      for (at[1] = 0; at[1] < s.kernel[1]; ++at[1])
        for (at[2] = 0; at[2] < s.kernel[2]; ++at[2], columns += end - begin)
          unfold_row(s, plane, at, begin, end, columns);
  }
}

// y = weight rows·columns; `rows` of the group's outputs.
void multiply(const ConvShape& s, const float* weight, int64_t rows, const float* columns, int64_t ldb, int64_t n,
              float* y) {
  if (!prefers_rows(rows, n, s.depth()))
    return gemm(false, false, rows, n, s.depth(), 1.0f, weight, s.depth(), columns, ldb, 0.0f, y, s.output_size());
  SmallGemmArgs g;
  g.m = rows, g.n = n, g.k = s.depth();
  g.a = weight, g.a_row = s.depth();
  g.b = columns, g.ldb = ldb;
  g.c = y, g.ldc = s.output_size();
  small_gemm().rows(g);
}

void multiply(const ConvShape& s, const double* weight, int64_t rows, const double* columns, int64_t ldb, int64_t n,
              double* y) {
  gemm(false, false, rows, n, s.depth(), 1.0, weight, s.depth(), columns, ldb, 0.0, y, s.output_size());
}

void add_bias(float bias, float* y, int64_t n) { vec_table().scale_shift(y, y, static_cast<size_t>(n), 1.0f, bias); }
void add_bias(double bias, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += bias;
}

template <typename T>
struct Operands {
  const T *x, *weight, *bias;
  T* y;
};

// Outputs [rows.begin, rows.end) of one tile of one group of one image; `item` counts tiles, then groups and images.
template <typename T>
void convolve(const ColumnConv& t, const Operands<T>& o, int64_t item, Part rows, T* columns) {
  const ConvShape& s = t.shape;
  const int64_t size = s.output_size(), i = item / t.tiles(), g = i % s.groups;
  const int64_t begin = item % t.tiles() * t.tile, n = std::min(size - begin, t.tile);
  const T* image = o.x + i * s.group_channels() * s.input_size();
  const T* weight = o.weight + (g * s.group_outputs() + rows.begin) * s.depth();
  T* y = o.y + (i * s.group_outputs() + rows.begin) * size + begin;
  if (s.is_pointwise()) {
    multiply(s, weight, rows.end - rows.begin, image + begin, size, n, y);
  } else {
    unfold(s, image, begin, begin + n, columns);
    multiply(s, weight, rows.end - rows.begin, columns, n, n, y);
  }
  for (int64_t c = rows.begin; o.bias && c < rows.end; ++c, y += size)
    add_bias(o.bias[g * s.group_outputs() + c], y, n);
}

template <typename T>
Status launch_columns(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const ColumnConv*>(task.tiling);
  const ConvShape& s = t.shape;
  const Operands<T> o{task.input<T>(slots, 0), task.input<T>(slots, 1), s.has_bias ? task.input<T>(slots, 2) : nullptr,
                      task.output<T>(slots, 0)};
  const int64_t items = s.batch * s.groups * t.tiles();
  auto* columns = static_cast<T*>(task.workspace(slots));
  if (s.is_pointwise()) {
    parallel_for(t.threads, items * t.row_parts, [&](int64_t part) {
      convolve(t, o, part / t.row_parts, part_of(s.group_outputs(), kRowUnit, t.row_parts, part % t.row_parts),
               columns);
    });
    return Status::kOk;
  }
  parallel_for(t.threads, t.threads, [&](int64_t part) {
    const Part own = part_of(items, 1, t.threads, part);
    for (int64_t i = own.begin; i < own.end; ++i)
      convolve(t, o, i, {0, s.group_outputs()}, columns + part * t.tile * s.depth());
  });
  return Status::kOk;
}

}  // namespace

template <typename T>
std::shared_ptr<const Tiling> tile_column_conv(const ConvShape& s, int threads) {
  constexpr int64_t kTileElements = int64_t{1} << 17, kPositions = 64, kRowsOfPart = 32;
  const bool is_pointwise = s.is_pointwise();
  auto t = create_tiling<ColumnConv>(launch_columns<T>, is_pointwise ? "gemm:pointwise" : "gemm:columns");
  t->shape = s;
  t->threads = threads;
  const int64_t fitting = kTileElements / std::max<int64_t>(s.depth(), 1) / kPositions * kPositions;
  t->tile = std::min(s.output_size(), std::max(fitting, kPositions));
  if (threads > 1) t->row_parts = std::clamp<int64_t>(s.group_outputs() / kRowsOfPart, 1, 2 * threads);
  if (!is_pointwise) t->workspace_bytes = static_cast<size_t>(threads * t->tile * s.depth()) * sizeof(T);
  return t;
}

template std::shared_ptr<const Tiling> tile_column_conv<float>(const ConvShape&, int);
template std::shared_ptr<const Tiling> tile_column_conv<double>(const ConvShape&, int);

}  // namespace asc::cpu
