// Convolution with few output positions: for every kernel position, the inputs that its outputs see times its weights,
// without unfolding. Kernel positions that lie in the padding cost nothing. Weights are packed in panels of output
// channels, a row for each kernel position and channel.
#include <algorithm>
#include <vector>

#include "backends/cpu/conv.h"
#include "backends/cpu/tap_gemm.h"
#include "backends/cpu/transpose_4x4.h"
#include "base/hash.h"

namespace asc::cpu {
namespace {

// Kernel positions, one behind the other, that the same outputs see inside the input.
struct Segment {
  int64_t taps_begin = 0, taps_end = 0;
  size_t rows_begin = 0, rows_end = 0;  // in a_rows and c_rows
};

struct TapConv : Tiling {
  ConvShape shape;
  std::vector<Segment> segments;
  std::vector<int32_t> a_rows, c_rows;  // where outputs begin in the input at a segment's first tap; their numbers
  std::vector<int32_t> offsets;         // in the input, of the rows of the packed weights from a segment's first tap

  int64_t rows() const { return shape.batch * shape.output_size(); }
  // In the input, from position to position and from channel to channel.
  int64_t position_step() const { return shape.is_last ? shape.channels : 1; }
  int64_t channel_step() const { return shape.is_last ? 1 : shape.input_size(); }
  size_t bytes() const override {
    return sizeof(TapConv) + segments.capacity() * sizeof(Segment) +
           (a_rows.capacity() + c_rows.capacity() + offsets.capacity()) * sizeof(int32_t);
  }
};

// Appends the outputs of one image that see `tap` inside the input (to c_rows), and what they see (to a_rows).
void find_outputs(const TapConv& t, int64_t tap, std::vector<int32_t>* a_rows, std::vector<int32_t>* c_rows) {
  const ConvShape& s = t.shape;
  const int64_t k[] = {tap / (s.kernel[2] * s.kernel[1]), tap / s.kernel[2] % s.kernel[1], tap % s.kernel[2]};
  int64_t o[kWindowAxes], number = 0;
  for (o[0] = 0; o[0] < s.output[0]; ++o[0])
    for (o[1] = 0; o[1] < s.output[1]; ++o[1])
      for (o[2] = 0; o[2] < s.output[2]; ++o[2], ++number) {
        int64_t at = 0;
        bool inside = true;
        for (int axis = 0; axis < kWindowAxes; ++axis) {
          const int64_t p = s.position(axis, o[axis], k[axis]);
          inside = inside && s.is_inside(axis, p);
          at = at * s.input[axis] + p;
        }
        if (!inside) continue;
        a_rows->push_back(static_cast<int32_t>(at * t.position_step()));
        c_rows->push_back(static_cast<int32_t>(number));
      }
}

// Repeats the last `count` rows for the other images.
void repeat_rows(TapConv* t, size_t count) {
  const ConvShape& s = t->shape;
  const size_t first = t->a_rows.size() - count;
  for (int64_t image = 1; image < s.batch; ++image)
    for (size_t i = first; i < first + count; ++i) {
      t->a_rows.push_back(t->a_rows[i] + static_cast<int32_t>(image * s.channels * s.input_size()));
      t->c_rows.push_back(t->c_rows[i] + static_cast<int32_t>(image * s.output_size()));
    }
}

void find_segments(TapConv* t) {
  const ConvShape& s = t->shape;
  t->offsets.resize(static_cast<size_t>(s.depth()));
  std::vector<int32_t> a_rows, c_rows, last;
  for (int64_t tap = 0; tap < s.kernel_size(); ++tap, a_rows.clear(), c_rows.clear()) {
    find_outputs(*t, tap, &a_rows, &c_rows);
    if (c_rows.empty()) continue;
    const bool continues = !t->segments.empty() && t->segments.back().taps_end == tap && c_rows == last;
    if (!continues) {
      Segment segment;
      segment.taps_begin = tap;
      segment.rows_begin = t->a_rows.size();
      t->a_rows.insert(t->a_rows.end(), a_rows.begin(), a_rows.end());
      t->c_rows.insert(t->c_rows.end(), c_rows.begin(), c_rows.end());
      repeat_rows(t, a_rows.size());
      segment.rows_end = t->a_rows.size();
      t->segments.push_back(segment);
      last = c_rows;
    }
    Segment& segment = t->segments.back();
    segment.taps_end = tap + 1;
    const int32_t offset = a_rows[0] - t->a_rows[segment.rows_begin];
    for (int64_t c = 0; c < s.channels; ++c)
      t->offsets[static_cast<size_t>(tap * s.channels + c)] = offset + static_cast<int32_t>(c * t->channel_step());
  }
}

// Weights lie as [output channel][channel][kernel position].
void pack_weights(const Tiling& tiling, const void* const* inputs, void* packed) {
  const ConvShape& s = static_cast<const TapConv&>(tiling).shape;
  const auto* weights = static_cast<const float*>(inputs[1]);
  auto* to = static_cast<float*>(packed);
  const int64_t taps = s.kernel_size();
  for (int64_t panel = 0; panel < TapPanel::count(s.out_channels); ++panel) {
    const int64_t begin = panel * TapPanel::kColumns, width = TapPanel::width(s.out_channels, panel);
    const int64_t used = std::min(width, s.out_channels - begin);
    for (int64_t tap = 0; tap < taps; ++tap)
      for (int64_t c = 0; c < s.channels; ++c, to += width)
        for (int64_t j = 0; j < width; ++j)
          to[j] = j < used ? weights[((begin + j) * s.channels + c) * taps + tap] : 0.0f;
  }
}

// The output channels of one panel; `sums` has a row of the panel for each output.
void convolve_panel(const TapConv& t, int64_t panel, const float* x, const float* packed, const float* bias, float* y,
                    float* sums) {
  const ConvShape& s = t.shape;
  const int64_t begin = panel * TapPanel::kColumns, used = std::min(TapPanel::kColumns, s.out_channels - begin);
  const int64_t positions = s.output_size();
  TapGemmArgs g;
  g.width = TapPanel::width(s.out_channels, panel);
  g.x = x;
  g.c = sums;
  for (int64_t i = 0; i < t.rows(); ++i) {
    float* row = sums + i * g.width;
    std::fill_n(row, g.width, 0.0f);
    if (bias) std::copy_n(bias + begin, used, row);
  }
  packed += begin * s.depth();
  const TapGemm add = tap_gemm();
  for (const Segment& segment : t.segments) {
    g.rows = static_cast<int64_t>(segment.rows_end - segment.rows_begin);
    g.k = (segment.taps_end - segment.taps_begin) * s.channels;
    g.a_rows = t.a_rows.data() + segment.rows_begin;
    g.c_rows = t.c_rows.data() + segment.rows_begin;
    g.offsets = t.offsets.data() + segment.taps_begin * s.channels;
    g.b = packed + segment.taps_begin * s.channels * g.width;
    add(g);
  }
  for (int64_t i = 0; s.is_last && i < t.rows(); ++i)
    std::copy_n(sums + i * g.width, used, y + i * s.out_channels + begin);
  for (int64_t image = 0; !s.is_last && image < s.batch; ++image)
    transpose_rows(sums + image * positions * g.width, g.width, positions, used,
                   y + (image * s.out_channels + begin) * positions, positions);
}

Status launch_taps(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const TapConv*>(task.tiling);
  const auto* x = task.input<float>(slots, 0);
  const auto* packed = static_cast<const float*>(task.packed(slots));
  const float* bias = t.shape.has_bias ? task.input<float>(slots, 2) : nullptr;
  auto* y = task.output<float>(slots, 0);
  auto* sums = static_cast<float*>(task.workspace(slots));
  for (int64_t panel = 0; panel < TapPanel::count(t.shape.out_channels); ++panel)
    convolve_panel(t, panel, x, packed, bias, y, sums);
  return Status::kOk;
}

}  // namespace

// Measured against oneDNN, which wins where many outputs share what was read of the weights, and against plain columns,
// which do where sums are short. Without padding all kernel positions make one sum. The narrow column blocks of the
// smaller sets leave gaps in their reading, which shows once the second-level cache does not hold the weights.
bool wants_float_taps(const TilingContext& ctx, const ConvShape& s) {
  constexpr int64_t kFewRows = 128, kFewWeights = int64_t{1} << 16, kLongSum = 16, kFullColumns = 8;
  constexpr int64_t kManyInputs = int64_t{1} << 30;  // offsets have 32 bits
  if (!ctx.is_constant(1) || s.groups > 1 || s.out_channels < kFullColumns) return false;
  if (s.batch * s.output_size() > kFewRows || s.batch * s.channels * s.input_size() >= kManyInputs) return false;
  if ((s.has_padding() ? s.channels : s.depth()) < kLongSum) return false;
  if (current_isa() != Isa::kV4 && s.out_channels * s.depth() > kFewWeights) return false;
  return threads_for(ctx, s.operations()) == 1;
}

std::shared_ptr<const Tiling> tile_float_taps(const ConvShape& s) {
  auto t = create_tiling<TapConv>(launch_taps, "vector:taps");
  t->shape = s;
  find_segments(t.get());
  t->workspace_bytes = static_cast<size_t>(t->rows() * TapPanel::kColumns) * sizeof(float);
  t->packed_bytes = static_cast<size_t>(s.depth() * TapPanel::padded(s.out_channels)) * sizeof(float);
  const uint64_t words[] = {0x74617073, static_cast<uint64_t>(s.out_channels), static_cast<uint64_t>(s.channels),
                            static_cast<uint64_t>(s.kernel_size())};
  t->packed_layout = hash_words(words, 4) | 1;
  t->pack = pack_weights;
  return t;
}

}  // namespace asc::cpu
