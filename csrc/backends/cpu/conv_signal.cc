// Convolution of one channel along one axis: filter banks, resampling, the first layer of networks on sound. What a
// kernel sees lies one behind the other, so that the padded signal is the left-hand matrix of a product as it is, its
// rows a stride apart and overlapping; nothing is unfolded. A few filters are added up position by position of the
// kernel instead, vectors running along the outputs, which then need the signal split by its stride.
#include <algorithm>

#include "backends/cpu/conv.h"
#include "backends/cpu/panel_gemm.h"
#include "backends/cpu/transpose_4x4.h"
#include "backends/cpu/vec_table.h"

namespace asc::cpu {
namespace {

constexpr int kAxis = kWindowAxes - 1;

struct SignalConv : TilingOf<SignalConv> {
  ConvShape shape;
  int64_t length = 0;  // of the padded signal, or of one of its parts, where it is split
  int64_t tile = 0;    // outputs at once
  size_t sums_offset = 0;
};

// With zeros on both sides, the elements from `first` on that are `step` apart.
void copy_padded(const ConvShape& s, const float* x, int64_t first, int64_t step, float* to, int64_t n) {
  const int64_t begin = first - s.pad_begin[kAxis];  // what to[0] is
  const int64_t low = std::clamp<int64_t>(begin >= 0 ? 0 : (step - 1 - begin) / step, 0, n);
  const int64_t inside = s.input[kAxis] - begin;  // may be negative
  const int64_t high = std::clamp<int64_t>(inside <= 0 ? 0 : (inside + step - 1) / step, low, n);
  std::fill_n(to, low, 0.0f);
  if (step == 1)
    std::copy(x + begin + low, x + begin + high, to + low);
  else
    for (int64_t i = low; i < high; ++i) to[i] = x[begin + i * step];
  std::fill(to + high, to + n, 0.0f);
}

Status launch_products(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const SignalConv*>(task.tiling);
  const ConvShape& s = t.shape;
  const auto* x = task.input<float>(slots, 0);
  auto* y = task.output<float>(slots, 0);
  auto* workspace = static_cast<char*>(task.workspace(slots));
  auto *signal = reinterpret_cast<float*>(workspace), *sums = reinterpret_cast<float*>(workspace + t.sums_offset);
  const int64_t positions = s.output_size(), stride = s.stride[kAxis];
  SmallGemmArgs g;
  g.n = g.ldc = s.out_channels;
  g.k = s.kernel_size();
  g.a_row = stride, g.a_column = s.dilation[kAxis];
  g.b = static_cast<const float*>(task.packed(slots));
  g.c = sums;
  g.add = s.has_bias ? task.input<float>(slots, 2) : nullptr;
  for (int64_t i = 0; i < s.batch; ++i, x += s.input_size(), y += s.out_channels * positions) {
    copy_padded(s, x, 0, 1, signal, t.length);
    for (int64_t begin = 0; begin < positions; begin += t.tile) {
      g.m = std::min(t.tile, positions - begin);
      g.a = signal + begin * stride;
      multiply_panels(g);
      transpose_rows(sums, s.out_channels, g.m, s.out_channels, y + begin, positions);
    }
  }
  return Status::kOk;
}

void pack_filters(const Tiling& tiling, const void* const* inputs, void* packed) {
  const ConvShape& s = static_cast<const SignalConv&>(tiling).shape;
  pack_panels(static_cast<const float*>(inputs[1]), 1, s.kernel_size(), s.kernel_size(), s.out_channels,
              static_cast<float*>(packed));
}

Status launch_few(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const SignalConv*>(task.tiling);
  const ConvShape& s = t.shape;
  const auto *x = task.input<float>(slots, 0), *weights = task.input<float>(slots, 1);
  const float* bias = s.has_bias ? task.input<float>(slots, 2) : nullptr;
  auto* y = task.output<float>(slots, 0);
  auto* parts = static_cast<float*>(task.workspace(slots));
  const int64_t positions = s.output_size(), stride = s.stride[kAxis], kernel = s.kernel_size();
  const auto axpy = vec_table().axpy;
  for (int64_t i = 0; i < s.batch; ++i, x += s.input_size(), y += s.out_channels * positions) {
    for (int64_t r = 0; r < stride; ++r) copy_padded(s, x, r, stride, parts + r * t.length, t.length);
    for (int64_t begin = 0; begin < positions; begin += t.tile) {
      const int64_t n = std::min(t.tile, positions - begin);
      for (int64_t c = 0; c < s.out_channels; ++c) {
        float* to = y + c * positions + begin;
        std::fill_n(to, n, bias ? bias[c] : 0.0f);
        for (int64_t k = 0, at = 0; k < kernel; ++k, at += s.dilation[kAxis])
          axpy(weights[c * kernel + k], parts + at % stride * t.length + at / stride + begin, to,
               static_cast<size_t>(n));
      }
    }
  }
  return Status::kOk;
}

constexpr int64_t kFewFilters = 8;

}  // namespace

bool wants_signal(const TilingContext& ctx, const ConvShape& s) {
  constexpr int64_t kLongKernel = 16, kMostStride = 1024;
  if (s.channels != 1 || s.groups != 1 || s.is_last || s.kernel_size() < kLongKernel) return false;
  for (int axis = 0; axis < kAxis; ++axis)
    if (s.input[axis] != 1 || s.output[axis] != 1 || s.kernel[axis] != 1 || s.pad_begin[axis] != 0) return false;
  if (s.out_channels < kFewFilters ? s.stride[kAxis] > kMostStride : !ctx.is_constant(1)) return false;
  return s.input_size() > 0 && threads_for(ctx, s.operations()) == 1;
}

std::shared_ptr<const Tiling> tile_signal(const ConvShape& s) {
  constexpr int64_t kTileElements = int64_t{1} << 13, kFewPositions = 2048;
  const int64_t stride = s.stride[kAxis];
  const int64_t seen = (s.output[kAxis] - 1) * stride + (s.kernel[kAxis] - 1) * s.dilation[kAxis] + 1;
  if (s.out_channels < kFewFilters) {
    auto t = create_tiling<SignalConv>(launch_few, "vector:signal");
    t->shape = s;
    t->length = (seen + stride - 1) / stride;
    t->tile = kFewPositions;
    t->workspace_bytes = static_cast<size_t>(t->length * stride) * sizeof(float);
    return t;
  }
  auto t = create_tiling<SignalConv>(launch_products, "gemm:signal");
  t->shape = s;
  t->length = seen;
  t->tile = std::clamp<int64_t>(kTileElements / s.out_channels / 4 * 4, 12, s.output_size() + 12);
  t->sums_offset = round_up(static_cast<size_t>(seen) * sizeof(float));
  t->workspace_bytes = t->sums_offset + static_cast<size_t>(t->tile * s.out_channels) * sizeof(float);
  t->packed_bytes = static_cast<size_t>(s.kernel_size() * s.out_channels) * sizeof(float);
  t->packed_layout = panel_layout(s.kernel_size(), s.out_channels, true);
  t->pack = pack_filters;
  return t;
}

}  // namespace asc::cpu
