// BytePool (ops/quantized.h): pooling of bytes, channels last, hence one row of channels per position.
#include <algorithm>
#include <cstring>

#include "backends/cpu/parallel.h"
#include "backends/cpu/plain_window.h"
#include "backends/cpu/quantize.h"
#include "backends/cpu/vec_table.h"
#include "ops/quantized.h"

namespace asc::cpu {
namespace {

struct BytePool : TilingOf<BytePool> {
  PlainWindow window;
  int64_t batch = 0, channels = 0;
  bool is_signed = false, includes_padding = false;
  int threads = 1;
  size_t part_bytes = 0;

  uint8_t flip() const { return is_signed ? 128 : 0; }
};

enum Input { kX, kXScale, kXZero, kYScale, kYZero };

// Calls f(row of channels) for each input position that output `at` of one image sees; returns how many there are.
template <typename F>
int64_t for_each_row(const BytePool& t, const uint8_t* image, int64_t at, F f) {
  const PlainWindow& w = t.window;
  const int64_t x = at % w.output[2], y = at / w.output[2] % w.output[1], z = at / (w.output[2] * w.output[1]);
  const IndexRange kz = inside_kernel(w, 0, z), ky = inside_kernel(w, 1, y), kx = inside_kernel(w, 2, x);
  for (int64_t a = kz.low; a < kz.high; ++a)
    for (int64_t b = ky.low; b < ky.high; ++b) {
      const int64_t line = w.position(0, z, a) * w.input[1] + w.position(1, y, b);
      for (int64_t c = kx.low; c < kx.high; ++c) f(image + (line * w.input[2] + w.position(2, x, c)) * t.channels);
    }
  return (kz.high - kz.low) * (ky.high - ky.low) * (kx.high - kx.low);
}

// Positions that an average counts: those of the padding too, where it asks for them.
int64_t count_positions(const PlainWindow& w, int64_t at) {
  const int64_t position[] = {at / (w.output[2] * w.output[1]), at / w.output[2] % w.output[1], at % w.output[2]};
  int64_t count = 1;
  for (int i = 0; i < kWindowAxes; ++i) {
    const IndexRange r = inside_kernel(w, i, position[i], -w.pad_begin[i], w.input[i] + w.pad_end[i]);
    count *= r.high - r.low;
  }
  return count;
}

template <typename F>
void for_each_output(const BytePool& t, F f) {
  const int64_t size = t.window.output_size();
  parallel_for(t.threads, t.threads, [&](int64_t part) {
    const Part own = part_of(t.batch * size, 1, t.threads, part);
    for (int64_t i = own.begin; i < own.end; ++i) f(part, i / size, i % size, i);
  });
}

// The input lines that output line (z, y) sees, one maximum per position and channel; null where it sees none. A single
// line is read where it lies.
template <typename Larger>
const uint8_t* combine_lines(const BytePool& t, const uint8_t* image, int64_t z, int64_t y, Larger larger,
                             uint8_t* line) {
  const PlainWindow& w = t.window;
  const int64_t bytes = w.input[2] * t.channels;
  const IndexRange kz = inside_kernel(w, 0, z), ky = inside_kernel(w, 1, y);
  const uint8_t* seen = nullptr;
  for (int64_t a = kz.low; a < kz.high; ++a)
    for (int64_t b = ky.low; b < ky.high; ++b) {
      const uint8_t* next = image + (w.position(0, z, a) * w.input[1] + w.position(1, y, b)) * bytes;
      if (seen) larger(next, seen, line, static_cast<size_t>(bytes));
      seen = seen ? line : next;
    }
  return seen;
}

// Maxima over whole lines first, as long as vectors like them, then over the positions of a line.
Status launch_max(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const BytePool*>(task.tiling);
  const PlainWindow& w = t.window;
  const auto larger = t.is_signed ? vec_table().max_signed_bytes : vec_table().max_bytes;
  const auto* x = task.input<uint8_t>(slots, 0);
  auto* y = task.output<uint8_t>(slots, 0);
  auto* workspace = static_cast<uint8_t*>(task.workspace(slots));
  const auto n = static_cast<size_t>(t.channels);
  const int64_t lines = w.output[0] * w.output[1];
  parallel_for(t.threads, t.threads, [&](int64_t part) {
    const Part own = part_of(t.batch * lines, 1, t.threads, part);
    for (int64_t i = own.begin; i < own.end; ++i) {
      const uint8_t* line =
          combine_lines(t, x + i / lines * w.input_size() * t.channels, i % lines / w.output[1], i % w.output[1],
                        larger, workspace + static_cast<size_t>(part) * t.part_bytes);
      uint8_t* to = y + i * w.output[2] * t.channels;
      for (int64_t o = 0; o < w.output[2]; ++o, to += t.channels) {
        const IndexRange kx = inside_kernel(w, 2, o);
        if (!line || kx.low == kx.high) {
          std::memset(to, t.is_signed ? -128 : 0, n);
          continue;
        }
        std::memcpy(to, line + w.position(2, o, kx.low) * t.channels, n);
        for (int64_t k = kx.low + 1; k < kx.high; ++k) larger(line + w.position(2, o, k) * t.channels, to, to, n);
      }
    }
  });
  return Status::kOk;
}

Status launch_average(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const BytePool*>(task.tiling);
  const VecTable& v = vec_table();
  const auto slot = [&](int i) { return slots[task.operands[i]]; };
  const DType type = t.is_signed ? DType::kInt8 : DType::kUInt8;
  const float x_scale = *static_cast<const float*>(slot(kXScale)), y_scale = *static_cast<const float*>(slot(kYScale));
  const int32_t x_zero = zero_at(slot(kXZero), type) + t.flip();
  const auto y_zero = static_cast<float>(zero_at(slot(kYZero), type));
  const auto* x = task.input<uint8_t>(slots, 0);
  auto* y = task.output<uint8_t>(slots, 0);
  auto* workspace = static_cast<char*>(task.workspace(slots));
  const auto n = static_cast<size_t>(t.channels);
  for_each_output(t, [&](int64_t part, int64_t image, int64_t at, int64_t i) {
    auto* sums = reinterpret_cast<int32_t*>(workspace + static_cast<size_t>(part) * t.part_bytes);
    auto* real = reinterpret_cast<float*>(sums + n);
    std::fill_n(sums, n, 0);
    const int64_t seen = for_each_row(t, x + image * t.window.input_size() * t.channels, at,
                                      [&](const uint8_t* row) { v.add_bytes(row, t.flip(), sums, n); });
    const int64_t counted = t.includes_padding ? count_positions(t.window, at) : seen;
    const float factor = x_scale / static_cast<float>(counted);
    const auto zeros = static_cast<int32_t>(seen * x_zero);
    for (size_t c = 0; c < n; ++c) real[c] = static_cast<float>(sums[c] - zeros) * factor;
    v.quantize_bytes(real, y + i * t.channels, n, y_scale, y_zero, t.is_signed ? -128.0f : 0.0f);
  });
  return Status::kOk;
}

std::shared_ptr<const Tiling> tile_byte_pool(const TilingContext& ctx) {
  constexpr int64_t kMaxPositions = int64_t{1} << 23;  // of bytes in a sum of 32 bits
  constexpr double kByteCost = 0.5;                    // operations that take as long as one byte of input
  if (count_of(ctx.output(0)) == 0) return create_empty_tiling();
  const Shape x = channels_first(ctx.input(0));
  const std::string_view mode = ctx.attributes().get_string("mode", "");
  auto t = mode == "max" ? create_tiling<BytePool>(launch_max, "lines")
                         : create_tiling<BytePool>(launch_average, "rows of channels");
  t->window = make_row_window(ctx, x);
  if (mode != "max" && t->window.kernel_size() > kMaxPositions)
    ctx.unsupported("an average over " + std::to_string(t->window.kernel_size()) +
                    " positions may overflow; compile with fuse=False");
  t->batch = x[0];
  t->channels = x[1];
  t->is_signed = ctx.dtype(0) == DType::kInt8;
  t->includes_padding = ctx.attr("count_include_pad", 0) != 0;
  const int64_t rows = t->batch * t->window.output_size() * t->window.kernel_size();
  t->threads = threads_for(ctx, kByteCost * static_cast<double>(rows) * static_cast<double>(t->channels));
  t->part_bytes = round_up(static_cast<size_t>(t->channels) *
                           (mode == "max" ? static_cast<size_t>(t->window.input[2]) : sizeof(int32_t) + sizeof(float)));
  t->workspace_bytes = static_cast<size_t>(t->threads) * t->part_bytes;
  return t;
}

}  // namespace

void register_byte_pool(KernelRegistry& registry) {
  registry.add(byte_pool_op().name, DType::kInt8 | DType::kUInt8, tile_byte_pool);
}

}  // namespace asc::cpu
