// Depthwise convolution of bytes: channels lie last, hence every kernel position adds a row of channels times a row of
// weights. Exact for any zero points.
#include <algorithm>
#include <cstring>

#include "backends/cpu/conv_bytes.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/vec_table.h"
#include "base/hash.h"

namespace asc::cpu {
namespace {

struct TapConv : TilingOf<TapConv> {
  ByteConv conv;
  int threads = 1;
  size_t zero_row = 0, parts = 0, part_bytes = 0;  // in the workspace

  size_t channels() const { return static_cast<size_t>(conv.shape.channels); }
  size_t taps() const { return static_cast<size_t>(conv.shape.kernel_size()); }
  size_t weight_bytes() const { return round_up(taps() * channels() * sizeof(int16_t)); }
};

// Weights less their zero points as [kernel..., channel], then the sum of each channel's.
void pack_taps(const Tiling& tiling, const void* const* inputs, void* packed) {
  const auto& t = static_cast<const TapConv&>(tiling);
  const ByteConv& c = t.conv;
  const auto* w = static_cast<const char*>(inputs[kQuantW]);
  const auto* zeros = static_cast<const char*>(inputs[kQuantWZero]);
  auto* to = static_cast<int16_t*>(packed);
  auto* sums = reinterpret_cast<int32_t*>(static_cast<char*>(packed) + t.weight_bytes());
  for (size_t i = 0; i < t.channels(); ++i) {
    const int32_t zero = zero_at(zeros ? zeros + (c.has_column_zeros ? i : 0) : nullptr, c.w_type);
    sums[i] = 0;
    for (size_t k = 0; k < t.taps(); ++k, ++w) {
      const int32_t value = zero_at(w, c.w_type) - zero;
      to[k * t.channels() + i] = static_cast<int16_t>(value);
      sums[i] += value;
    }
  }
}

// The rows of channels that output position `at` sees; padding sees `zero_row`.
void find_rows(const ConvShape& s, const uint8_t* image, const uint8_t* zero_row, int64_t at, const uint8_t** rows) {
  const int64_t x = at % s.output[2], y = at / s.output[2] % s.output[1], z = at / (s.output[2] * s.output[1]);
  for (int64_t kz = 0; kz < s.kernel[0]; ++kz)
    for (int64_t ky = 0; ky < s.kernel[1]; ++ky) {
      const int64_t iz = s.position(0, z, kz), iy = s.position(1, y, ky);
      const bool is_line = s.is_inside(0, iz) && s.is_inside(1, iy);
      for (int64_t kx = 0; kx < s.kernel[2]; ++kx) {
        const int64_t ix = s.position(2, x, kx);
        *rows++ =
            is_line && s.is_inside(2, ix) ? image + ((iz * s.input[1] + iy) * s.input[2] + ix) * s.channels : zero_row;
      }
    }
}

Status launch_taps(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const TapConv*>(task.tiling);
  const ByteConv& c = t.conv;
  const ConvShape& s = c.shape;
  const auto slot = [&](int i) { return i < task.input_count ? slots[task.operands[i]] : nullptr; };
  const size_t n = t.channels();
  const auto* packed = static_cast<const char*>(task.packed(slots));
  const auto* sums = reinterpret_cast<const int32_t*>(packed + t.weight_bytes());
  auto* workspace = static_cast<char*>(task.workspace(slots));
  auto* start = reinterpret_cast<int32_t*>(workspace);
  auto *scales = reinterpret_cast<float*>(start + n), *add = scales + n;
  auto* zero_row = reinterpret_cast<uint8_t*>(workspace + t.zero_row);
  const uint8_t flip = c.x_type == DType::kInt8 ? 128 : 0;
  const int32_t x_zero = zero_at(slot(kQuantXZero), c.x_type), y_zero = zero_at(slot(kQuantYZero), c.y_type);
  const auto *scale = static_cast<const float*>(slot(kQuantScale)), *bias = static_cast<const float*>(slot(kQuantBias));
  for (size_t i = 0; i < n; ++i) {
    start[i] = -(x_zero + flip) * sums[i];
    scales[i] = scale[c.scales == 1 ? 0 : i];
    add[i] = bias ? bias[i] : 0.0f;
  }
  std::memset(zero_row, static_cast<uint8_t>(x_zero), n);
  const float y_scale = c.rounds() ? *static_cast<const float*>(slot(kQuantYScale)) : 1.0f;
  const auto* x = task.input<uint8_t>(slots, kQuantX);
  auto* y = task.output<char>(slots, 0);
  const int64_t positions = s.output_size();
  const size_t row_bytes = n * size_of(c.y_type);
  parallel_for(t.threads, t.threads, [&](int64_t part) {
    const Part own = part_of(s.batch * positions, 1, t.threads, part);
    char* memory = workspace + t.parts + static_cast<size_t>(part) * t.part_bytes;
    auto** rows = reinterpret_cast<const uint8_t**>(memory);
    auto* reals = reinterpret_cast<float*>(memory + round_up(t.taps() * sizeof(*rows)));
    const VecTable::Taps taps{rows, t.taps(), flip, reinterpret_cast<const int16_t*>(packed), start, scales, add};
    for (int64_t i = own.begin; i < own.end; ++i) {
      find_rows(s, x + i / positions * s.input_size() * s.channels, zero_row, i % positions, rows);
      vec_table().scale_taps(taps, reals, n);
      store_reals(c, reals, y_scale, y_zero, y + static_cast<size_t>(i) * row_bytes, s.channels);
    }
  });
  return Status::kOk;
}

}  // namespace

std::shared_ptr<const Tiling> tile_tap_conv(const ByteConv& c, int threads) {
  auto t = create_tiling<TapConv>(launch_taps, "vector:taps");
  t->conv = c;
  t->threads = threads;
  t->zero_row = round_up(t->channels() * (sizeof(int32_t) + 2 * sizeof(float)));
  t->parts = t->zero_row + round_up(t->channels());
  t->part_bytes = round_up(t->taps() * sizeof(void*)) + round_up(t->channels() * sizeof(float));
  t->workspace_bytes = t->parts + static_cast<size_t>(threads) * t->part_bytes;
  t->packed_bytes = t->weight_bytes() + t->channels() * sizeof(int32_t);
  const uint64_t words[] = {0x74617073, t->taps(), t->channels(), c.w_type == DType::kInt8,
                            static_cast<uint64_t>(c.has_column_zeros) << 1 | c.has_w_zeros};
  t->packed_layout = hash_words(words, 5) | 1;
  t->pack = pack_taps;
  return t;
}

}  // namespace asc::cpu
