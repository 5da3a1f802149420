// Convolution of bytes as exact products (byte_gemm.h). Channels lie last, hence what one output position sees is a
// row of few contiguous pieces; rows of a tile of positions are unfolded, multiplied, scaled and rounded.
#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cpu/byte_gemm.h"
#include "backends/cpu/conv_bytes.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/vec_table.h"
#include "base/hash.h"

namespace asc::cpu {
namespace {

struct RowConv : TilingOf<RowConv> {
  ByteConv conv;
  int64_t tile = 0;  // output positions
  int threads = 1;
  size_t part_bytes = 0, shared_bytes = 0;  // workspace of a thread, and of all before it

  size_t group_bytes() const { return ByteMatrix::packed_bytes(conv.shape.depth(), conv.shape.group_outputs()); }
  int64_t tiles() const { return (conv.shape.output_size() + tile - 1) / tile; }
  int64_t padded_outputs() const { return ByteMatrix::padded_columns(conv.shape.group_outputs()); }
};

// Weights of each group as [kernel..., channel][output].
void pack_groups(const Tiling& tiling, const void* const* inputs, void* packed) {
  const auto& t = static_cast<const RowConv&>(tiling);
  const ConvShape& s = t.conv.shape;
  const auto* w = static_cast<const char*>(inputs[kQuantW]);
  const auto* zeros = static_cast<const char*>(inputs[kQuantWZero]);
  const int64_t outputs = s.group_outputs(), channels = s.group_channels(), kernel = s.kernel_size();
  std::vector<char> turned(static_cast<size_t>(s.depth() * outputs));
  for (int64_t g = 0; g < s.groups; ++g) {
    for (int64_t o = 0; o < outputs; ++o)
      for (int64_t c = 0; c < channels; ++c)
        for (int64_t k = 0; k < kernel; ++k, ++w) turned[static_cast<size_t>((k * channels + c) * outputs + o)] = *w;
    const ZeroPoints points{t.conv.has_column_zeros && zeros ? zeros + g * outputs : zeros,
                            t.conv.has_column_zeros ? 1 : 0};
    pack_bytes(turned.data(), t.conv.w_type == DType::kInt8, points, s.depth(), outputs,
               static_cast<char*>(packed) + static_cast<size_t>(g) * t.group_bytes());
  }
}

struct Operands {
  const uint8_t *x, *zero_byte;
  const char* packed;
  const float *scales, *bias;  // of all groups, each padded
  float y_scale;
  int32_t x_zero, y_zero;
  char* y;
};

// What one line of a kernel sees, in the channels of one group; `line` null: padding.
void unfold_line(const ConvShape& s, const uint8_t* line, uint8_t zero, int64_t x, uint8_t* to) {
  const int64_t channels = s.group_channels(), kernel = s.kernel[2];
  if (!line) {
    std::memset(to, zero, static_cast<size_t>(kernel * channels));
  } else if (s.groups == 1 && s.dilation[2] == 1) {  // one piece
    const int64_t first = s.position(2, x, 0);
    const int64_t begin = std::clamp<int64_t>(-first, 0, kernel);
    const int64_t end = std::clamp<int64_t>(s.input[2] - first, begin, kernel);
    std::memset(to, zero, static_cast<size_t>(begin * channels));
    if (end > begin)
      std::memcpy(to + begin * channels, line + (first + begin) * channels,
                  static_cast<size_t>((end - begin) * channels));
    std::memset(to + end * channels, zero, static_cast<size_t>((kernel - end) * channels));
  } else {
    for (int64_t k = 0; k < kernel; ++k, to += channels) {
      const int64_t at = s.position(2, x, k);
      if (s.is_inside(2, at))
        std::memcpy(to, line + at * s.channels, static_cast<size_t>(channels));
      else
        std::memset(to, zero, static_cast<size_t>(channels));
    }
  }
}

// The rows that `count` output positions from `begin` on see, in the channels of one group.
void unfold_rows(const ConvShape& s, const uint8_t* image, uint8_t zero, int64_t begin, int64_t count, uint8_t* to) {
  const int64_t line_bytes = s.kernel[2] * s.group_channels();
  int64_t x = begin % s.output[2], y = begin / s.output[2] % s.output[1], z = begin / (s.output[2] * s.output[1]);
  for (int64_t p = 0; p < count; ++p) {
    for (int64_t kz = 0; kz < s.kernel[0]; ++kz)
      for (int64_t ky = 0; ky < s.kernel[1]; ++ky, to += line_bytes) {
        const int64_t iz = s.position(0, z, kz), iy = s.position(1, y, ky);
        const bool is_line = s.is_inside(0, iz) && s.is_inside(1, iy);
        unfold_line(s, is_line ? image + (iz * s.input[1] + iy) * s.input[2] * s.channels : nullptr, zero, x, to);
      }
    if (++x < s.output[2]) continue;
    x = 0;
    if (++y < s.output[1]) continue;
    y = 0;
    ++z;
  }
}

// One tile of one group of one image; `item` counts tiles, then groups and images.
void convolve(const RowConv& t, const Operands& o, int64_t item, char* workspace) {
  const ByteConv& c = t.conv;
  const ConvShape& s = c.shape;
  const int64_t i = item / t.tiles(), g = i % s.groups, image = i / s.groups, outputs = s.group_outputs();
  const int64_t begin = item % t.tiles() * t.tile, n = std::min(s.output_size() - begin, t.tile);
  auto* rows = reinterpret_cast<uint8_t*>(workspace);
  auto* sums = reinterpret_cast<int32_t*>(workspace + round_up(static_cast<size_t>(t.tile * s.depth())));
  auto* row_sums = sums + t.tile * outputs;
  const uint8_t* from = o.x + image * s.input_size() * s.channels + g * s.group_channels();
  unfold_rows(s, from, *o.zero_byte, begin, n, rows);
  const bool is_signed = c.x_type == DType::kInt8;
  const int32_t x_zero = o.x_zero + (is_signed ? 128 : 0);
  ByteGemmArgs a;
  a.m = n;
  a.a = rows;
  a.a_is_signed = is_signed;
  a.a_zeros = &x_zero;
  a.row_sums = row_sums;
  a.b = ByteMatrix::of(o.packed + static_cast<size_t>(g) * t.group_bytes(), s.depth(), outputs);
  a.c = sums;
  a.y = reinterpret_cast<float*>(sums);
  if (a.b.has_zeros()) sum_byte_rows(rows, is_signed, n, s.depth(), row_sums);
  if (c.scales) {
    a.scales = o.scales + g * t.padded_outputs();
    a.add = o.bias + g * t.padded_outputs();
    byte_gemm().scaled(a);
  } else {
    byte_gemm().sums(a);
  }
  const auto size = static_cast<int64_t>(size_of(c.y_type));
  const int64_t offset = (image * s.output_size() + begin) * s.out_channels;
  // Positions lie side by side where there is one group.
  const int64_t pieces = s.groups == 1 ? 1 : n, length = s.groups == 1 ? n * outputs : outputs;
  for (int64_t p = 0; p < pieces; ++p) {
    const int64_t at = offset + p * s.out_channels + g * outputs;
    if (c.scales)
      store_reals(c, a.y + p * outputs, o.y_scale, o.y_zero, o.y + at * size, length);
    else
      std::memcpy(o.y + at * 4, sums + p * outputs, static_cast<size_t>(length) * 4);
  }
}

// One value for each output of each group, padded.
void spread(const RowConv& t, const float* values, int64_t count, float* to) {
  const ConvShape& s = t.conv.shape;
  std::fill_n(to, s.groups * t.padded_outputs(), 0.0f);
  for (int64_t i = 0; count > 0 && i < s.out_channels; ++i)
    to[i / s.group_outputs() * t.padded_outputs() + i % s.group_outputs()] = values[count == 1 ? 0 : i];
}

Status launch_rows(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const RowConv*>(task.tiling);
  const ByteConv& c = t.conv;
  const auto slot = [&](int i) { return i < task.input_count ? slots[task.operands[i]] : nullptr; };
  auto* workspace = static_cast<char*>(task.workspace(slots));
  auto* scales = reinterpret_cast<float*>(workspace);
  float* bias = scales + c.shape.groups * t.padded_outputs();
  spread(t, static_cast<const float*>(slot(kQuantScale)), c.scales, scales);
  spread(t, static_cast<const float*>(slot(kQuantBias)), c.shape.has_bias ? c.shape.out_channels : 0, bias);
  const auto* packed = static_cast<const char*>(task.packed(slots));
  const int32_t x_zero = zero_at(slot(kQuantXZero), c.x_type);
  const auto zero_byte = static_cast<uint8_t>(x_zero);
  const float y_scale = c.rounds() ? *static_cast<const float*>(slot(kQuantYScale)) : 1.0f;
  const Operands o{task.input<uint8_t>(slots, kQuantX),
                   &zero_byte,
                   packed,
                   scales,
                   bias,
                   y_scale,
                   x_zero,
                   zero_at(slot(kQuantYZero), c.y_type),
                   task.output<char>(slots, 0)};
  const int64_t items = c.shape.batch * c.shape.groups * t.tiles();
  parallel_for(t.threads, t.threads, [&](int64_t part) {
    const Part own = part_of(items, 1, t.threads, part);
    for (int64_t i = own.begin; i < own.end; ++i)
      convolve(t, o, i, workspace + t.shared_bytes + static_cast<size_t>(part) * t.part_bytes);
  });
  return Status::kOk;
}

}  // namespace

std::shared_ptr<const Tiling> tile_row_conv(const ByteConv& c, int threads) {
  constexpr int64_t kTileBytes = int64_t{1} << 17, kPositions = 16;
  const ConvShape& s = c.shape;
  auto t = create_tiling<RowConv>(launch_rows, "rows of bytes");
  t->conv = c;
  t->threads = threads;
  const int64_t row = s.depth() + 4 * s.group_outputs() + 4;
  t->tile = std::min(s.output_size(), std::max(kTileBytes / row / kPositions * kPositions, kPositions));
  t->part_bytes = round_up(static_cast<size_t>(t->tile * s.depth())) +
                  round_up(static_cast<size_t>(t->tile * (s.group_outputs() + 1)) * sizeof(int32_t));
  t->shared_bytes = round_up(static_cast<size_t>(2 * s.groups * t->padded_outputs()) * sizeof(float));
  const uint64_t words[] = {0x636F6E76, static_cast<uint64_t>(s.groups), static_cast<uint64_t>(s.kernel_size()),
                            c.w_type == DType::kInt8, static_cast<uint64_t>(c.has_column_zeros) << 1 | c.has_w_zeros};
  t->packed_bytes = static_cast<size_t>(s.groups) * t->group_bytes();
  t->packed_layout = hash_words(words, 5) | 1;
  t->pack = pack_groups;
  t->workspace_bytes = t->shared_bytes + static_cast<size_t>(threads) * t->part_bytes;
  return t;
}

}  // namespace asc::cpu
