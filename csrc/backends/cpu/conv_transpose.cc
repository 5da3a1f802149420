// ConvTranspose: a matrix product gives what every input position adds at every kernel position; those columns are then
// added to the output (col2im). Output channels are taken in groups small enough for the second-level cache.
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "backends/cpu/blas.h"
#include "backends/cpu/conv.h"
#include "backends/cpu/half_adaptor.h"
#include "backends/cpu/nn.h"
#include "backends/cpu/plain_window.h"
#include "backends/cpu/small_gemm.h"

namespace asc::cpu {
namespace {

struct ConvTransposeTiling : Tiling {
  ConvShape shape;
  int64_t tile = 1;                // output channels at once
  std::vector<IndexRange> ranges;  // by kernel position of the width: the inputs that fall inside the output
  size_t bytes() const override { return sizeof(ConvTransposeTiling) + ranges.size() * sizeof(IndexRange); }
};

template <typename T>
void add_strided(const T* from, int64_t n, int64_t stride, T* to) {
  if (stride == 1)
    for (int64_t i = 0; i < n; ++i) to[i] += from[i];
  else if (stride == 2)
    for (int64_t i = 0; i < n; ++i) to[2 * i] += from[i];
  else
    for (int64_t i = 0; i < n; ++i) to[i * stride] += from[i];
}

typedef float Lanes __attribute__((vector_size(16)));
typedef int32_t Order __attribute__((vector_size(16)));

// to[2 i] += even[i], to[2 i + 1] += odd[i].
template <typename T>
void add_interleaved(const T* even, const T* odd, int64_t n, T* to) {
  int64_t i = 0;
  if constexpr (std::is_same_v<T, float>) {
    for (; i + 4 <= n; i += 4) {
      Lanes a, b, low, high;
      std::memcpy(&a, even + i, sizeof a);
      std::memcpy(&b, odd + i, sizeof b);
      std::memcpy(&low, to + 2 * i, sizeof low);
      std::memcpy(&high, to + 2 * i + 4, sizeof high);
      low += __builtin_shuffle(a, b, Order{0, 4, 1, 5});
      high += __builtin_shuffle(a, b, Order{2, 6, 3, 7});
      std::memcpy(to + 2 * i, &low, sizeof low);
      std::memcpy(to + 2 * i + 4, &high, sizeof high);
    }
  }
  for (; i < n; ++i) {
    to[2 * i] += even[i];
    to[2 * i + 1] += odd[i];
  }
}

// One output line and two columns that lie side by side in it, at a stride of 2. `first` is where input 0 of the even
// one goes, possibly outside the line; the ranges are those that fall inside.
template <typename T>
void add_pair(const T* even, const T* odd, IndexRange even_range, IndexRange odd_range, int64_t first, T* line) {
  const int64_t low = std::max(even_range.low, odd_range.low);
  const int64_t high = std::max(low, std::min(even_range.high, odd_range.high));
  const auto add_rest = [&](const T* from, IndexRange r, T* to) {
    for (int64_t i = r.low; i < std::min(low, r.high); ++i) to[2 * i] += from[i];
    for (int64_t i = std::max(high, r.low); i < r.high; ++i) to[2 * i] += from[i];
  };
  add_rest(even, even_range, line + first);
  add_rest(odd, odd_range, line + first + 1);
  add_interleaved(even + low, odd + low, high - low, line + first + 2 * low);
}

// Adds one line of the columns of one output channel and kernel row to its line of the output; the columns of the next
// kernel position lie `step` further.
template <typename T>
void add_line(const PlainWindow& w, const IndexRange* ranges, const T* columns, int64_t step, T* line) {
  const int64_t stride = w.stride[2];
  for (int64_t k = 0; k < w.kernel[2]; ++k, columns += step) {
    const IndexRange r = ranges[k];
    const int64_t first = w.position(2, 0, k);
    if (stride == 2 && w.dilation[2] == 1 && k + 1 < w.kernel[2]) {
      add_pair(columns, columns + step, r, ranges[k + 1], first, line);
      columns += step;
      ++k;
    } else {
      add_strided(columns + r.low, r.high - r.low, stride, line + first + r.low * stride);
    }
  }
}

// Adds the columns of one output channel, (kernel positions, input positions), to its plane.
template <typename T>
void fold(const ConvTransposeTiling& t, const T* columns, T* plane) {
  const PlainWindow& w = t.shape;
  const int64_t step = w.output_size(), row = w.kernel[2] * step;
  for (int64_t kz = 0; kz < w.kernel[0]; ++kz)
    for (int64_t ky = 0; ky < w.kernel[1]; ++ky, columns += row)
      for (int64_t z = 0; z < w.output[0]; ++z)
        for (int64_t y = 0; y < w.output[1]; ++y) {
          const int64_t to_z = w.position(0, z, kz), to_y = w.position(1, y, ky);
          if (w.is_inside(0, to_z) && w.is_inside(1, to_y))
            add_line(w, t.ranges.data(), columns + (z * w.output[1] + y) * w.output[2], step,
                     plane + (to_z * w.input[1] + to_y) * w.input[2]);
        }
}

// columns[m, n] = weight[k, m] transposed, times image[k, n].
void multiply(int64_t m, int64_t n, int64_t k, const float* weight, int64_t lda, const float* image, float* columns) {
  if (!prefers_rows(m, n, k)) return gemm(true, false, m, n, k, 1.0f, weight, lda, image, n, 0.0f, columns, n);
  SmallGemmArgs g;
  g.m = m, g.n = n, g.k = k;
  g.a = weight, g.a_row = 1, g.a_column = lda;
  g.b = image, g.ldb = n;
  g.c = columns, g.ldc = n;
  small_gemm().rows(g);
}

void multiply(int64_t m, int64_t n, int64_t k, const double* weight, int64_t lda, const double* image,
              double* columns) {
  gemm(true, false, m, n, k, 1.0, weight, lda, image, n, 0.0, columns, n);
}

template <typename T>
Status launch_conv_transpose(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const ConvTransposeTiling*>(task.tiling);
  const ConvShape& w = t.shape;
  const int64_t group_outputs = w.group_outputs(), group_channels = w.group_channels();
  const T *x = task.input<T>(slots, 0), *weight = task.input<T>(slots, 1);
  const T* bias = w.has_bias ? task.input<T>(slots, 2) : nullptr;
  T *y = task.output<T>(slots, 0), *columns = static_cast<T*>(task.workspace(slots));
  const int64_t in_size = w.output_size(), out_size = w.input_size(), kernel = w.kernel_size();
  const int64_t row = group_outputs * kernel;  // of the weight: one input channel
  for (int64_t i = 0; i < w.batch * w.groups; ++i, x += group_channels * in_size) {
    const int64_t group = i % w.groups;
    for (int64_t c = 0; c < group_outputs; c += t.tile) {
      const int64_t channels = std::min(t.tile, group_outputs - c);
      multiply(channels * kernel, in_size, group_channels, weight + group * group_channels * row + c * kernel, row, x,
               columns);
      for (int64_t j = 0; j < channels; ++j, y += out_size) {
        std::fill_n(y, out_size, bias ? bias[group * group_outputs + c + j] : T{0});
        fold(t, columns + j * kernel * in_size, y);
      }
    }
  }
  return Status::kOk;
}

template <typename T>
std::shared_ptr<const Tiling> tile_conv_transpose(const TilingContext& ctx) {
  if (count_of(ctx.output(0)) == 0) return create_empty_tiling();
  return tile_fold_conv<T>(make_spreading_shape(ctx, ctx.input(0)));
}

}  // namespace

template <typename T>
std::shared_ptr<const Tiling> tile_fold_conv(const ConvShape& shape) {
  constexpr int64_t kTileElements = int64_t{1} << 17;
  auto t = create_tiling<ConvTransposeTiling>(launch_conv_transpose<T>, "gemm:fold");
  t->shape = shape;
  for (int64_t k = 0; k < shape.kernel[2]; ++k) t->ranges.push_back(inside_line(shape, 0, shape.output[2], k));
  const int64_t columns = shape.kernel_size() * shape.output_size();  // of one output channel
  t->tile = std::clamp<int64_t>(kTileElements / std::max<int64_t>(columns, 1), 1, shape.group_outputs());
  t->workspace_bytes = static_cast<size_t>(t->tile * columns) * sizeof(T);
  return t;
}

template std::shared_ptr<const Tiling> tile_fold_conv<float>(const ConvShape& shape);
template std::shared_ptr<const Tiling> tile_fold_conv<double>(const ConvShape& shape);

ConvShape make_spreading_shape(const TilingContext& ctx, const Shape& x) {
  const Shape& w = ctx.input(1);
  ConvShape s;
  static_cast<PlainWindow&>(s) = make_spreading_window(ctx, x, w.begin() + 2);
  s.batch = x[0];
  s.channels = x[1];
  s.groups = ctx.attr("group", 1);
  s.out_channels = w[1] * s.groups;
  s.has_bias = ctx.has_input(2);
  s.is_transposed = true;
  return s;
}

void register_conv_transpose(KernelRegistry& registry) {
  registry.add("ConvTranspose", DType::kFloat32, tile_conv_transpose<float>);
  registry.add("ConvTranspose", kHalfFloats, tile_half<tile_conv_transpose<float>, 0>);
  registry.add("ConvTranspose", DType::kFloat64, tile_conv_transpose<double>);
}

}  // namespace asc::cpu
