// Convolution with channels last, with what follows it, by our own code: where channels are few, or not mixed, oneDNN
// multiplies vectors of which a part is padding, or waits for memory. An output line is the sum over the input lines
// that it sees. A transposed convolution with stride s is s convolutions, each of every s-th output of a line.
#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cpu/conv_last.h"
#include "backends/cpu/line_conv.h"
#include "backends/cpu/parallel.h"
#include "base/hash.h"

namespace asc::cpu {
namespace {

constexpr int64_t kMostRuns = 128;

// Output channels that one call computes.
struct Block {
  int64_t begin = 0, channels = 0, width = 0;  // width: with what is padded to whole vectors
  LineConv conv = nullptr;
};

// Outputs of a line that see the same taps.
struct Sweep {
  int64_t first = 0, step = 1, outputs = 0;  // outputs first, first + step, …
  int64_t begin = 0, stride = 1;             // where the first one's taps begin in the line, and from output to output
  int64_t taps = 0, tap = 0;                 // how many, and the number of the first one's weights
};

struct Lines : Tiling {
  ConvShape shape;
  std::vector<ConvEnd> ends;
  std::vector<Block> blocks;
  std::vector<Sweep> sweeps;
  int64_t part = 0;  // outputs of a sweep that are computed together
  int threads = 1;

  size_t bytes() const override {
    return sizeof(Lines) + ends.capacity() * sizeof(ConvEnd) + blocks.capacity() * sizeof(Block) +
           sweeps.capacity() * sizeof(Sweep);
  }
  const int64_t* read() const { return shape.is_transposed ? shape.output : shape.input; }
  const int64_t* made() const { return shape.is_transposed ? shape.input : shape.output; }
  bool mixes() const { return !shape.is_depthwise(); }
  int64_t depth() const { return mixes() ? shape.channels : 1; }  // rows of the weights for each tap
  int64_t rows() const { return depth() * shape.kernel_size(); }
};

// Of a transposed convolution, the taps k of output p see input (p + pad - k) / stride: every stride-th tap, backwards.
std::vector<Sweep> make_sweeps(const ConvShape& s) {
  if (!s.is_transposed) return {{0, 1, s.output[2], s.position(2, 0, 0), s.stride[2], s.kernel[2], 0}};
  std::vector<Sweep> sweeps;
  const int64_t stride = s.stride[2], kernel = s.kernel[2];
  for (int64_t first = 0; first < std::min(stride, s.input[2]); ++first) {
    const int64_t rest = (first + s.pad_begin[2]) % stride;
    const auto taps_of = [&](int64_t r) { return r < kernel ? (kernel - r + stride - 1) / stride : 0; };
    Sweep sweep;
    sweep.first = first;
    sweep.step = stride;
    sweep.outputs = (s.input[2] - first + stride - 1) / stride;
    sweep.taps = taps_of(rest);
    sweep.begin = (first + s.pad_begin[2] - rest) / stride - (sweep.taps - 1);
    for (int64_t r = 0; r < rest; ++r) sweep.tap += taps_of(r);
    sweeps.push_back(sweep);
  }
  return sweeps;
}

// The kernel positions of a line in the order of the weights' rows: that of the sweeps of a transposed convolution.
std::vector<int64_t> order_taps(const ConvShape& s) {
  std::vector<int64_t> order;
  const int64_t kernel = s.kernel[2], stride = s.is_transposed ? s.stride[2] : 1;
  for (int64_t rest = 0; rest < std::min(stride, kernel); ++rest) {
    for (int64_t k = rest; k < kernel; k += stride) order.push_back(k);
    if (s.is_transposed) std::reverse(order.end() - (kernel - rest + stride - 1) / stride, order.end());
  }
  return order;
}

// Outputs that are computed for `outputs` of a line.
int64_t tiled(int64_t outputs, const LineBlock& block) {
  const int64_t tile = outputs < block.tile ? block.tile / 2 : block.tile;
  return (outputs + tile - 1) / tile * tile;
}

// Blocks of as equal a width as can be, wide ones where tiles fill lines of `outputs`; what does not fill a vector, or
// only half of one, is a block of its own.
std::vector<Block> make_blocks(const LineKernels& kernels, const ConvShape& s, int64_t outputs) {
  const auto find = [&](const LineVectors& v, int64_t vectors) {
    return v.blocks[vectors - 1].find(!s.is_depthwise(), s.kernel[2], s.stride[2]);
  };
  std::vector<Block> blocks;
  int64_t begin = 0;
  const auto add = [&](const LineVectors& v, int64_t vectors) {
    Block b;
    b.begin = begin;
    b.channels = std::min(s.out_channels - begin, vectors * v.lanes);
    b.width = vectors * v.lanes;
    b.conv = find(v, vectors);
    blocks.push_back(b);
    begin += b.channels;
  };
  const LineVectors &wide = kernels.wide, &narrow = kernels.narrow;
  int64_t most = 1;
  while (most < LineVectors::kMostVectors && find(wide, most + 1) &&
         tiled(outputs, wide.blocks[most]) <= tiled(outputs, wide.blocks[most - 1]))
    ++most;
  for (int64_t left = s.out_channels / wide.lanes; left > 0;) {
    const int64_t vectors = left / ((left + most - 1) / most);
    add(wide, vectors);
    left -= vectors;
  }
  while (begin < s.out_channels) add(s.out_channels - begin <= narrow.lanes ? narrow : wide, 1);
  return blocks;
}

class Launch {
 public:
  Launch(const Lines& t, const Task& task, void* const* slots)
      : t_(t),
        x_(task.input<float>(slots, 0)),
        weights_(static_cast<const float*>(task.packed(slots))),
        bias_(t.shape.has_bias ? task.input<float>(slots, 2) : nullptr),
        zeros_(static_cast<const float*>(task.workspace(slots))),
        y_(task.output<float>(slots, 0)) {
    for (size_t i = 0, n = 0; i < t.ends.size(); ++i)
      if (t.ends[i].kind == ConvEnd::Kind::kAdd) {
        operands_[n] = task.input<float>(slots, kConvInputs + static_cast<int>(n));
        ++n;
      }
  }

  // Part `part` of each sweep over a line; lines of all images are numbered one behind the other.
  void compute(int64_t line, int64_t part) const {
    LineRun runs[kMostRuns];
    LineArgs a;
    a.runs = runs;
    a.run_count = find_runs(line, runs);
    a.zeros = zeros_;
    a.depth = t_.depth();
    a.ends = t_.ends.data();
    a.end_count = static_cast<int>(t_.ends.size());
    for (const Sweep& sweep : t_.sweeps) {
      const int64_t first = part * t_.part;
      a.outputs = std::min(t_.part, sweep.outputs - first);
      if (a.outputs > 0) compute(line, first, sweep, &a);
    }
  }

 private:
  void compute(int64_t line, int64_t first, const Sweep& sweep, LineArgs* args) const {
    LineArgs& a = *args;
    const ConvShape& s = t_.shape;
    a.stride = sweep.stride, a.dilation = s.is_transposed ? 1 : s.dilation[2];
    a.begin = sweep.begin + first * sweep.stride, a.width = t_.read()[2];
    a.taps = sweep.taps;
    a.x_step = a.stride * s.channels, a.x_tap = a.dilation * s.channels;
    a.y_step = sweep.step * s.out_channels;
    const int64_t* made = t_.made();
    const int64_t image = line / (made[0] * made[1]);
    const int64_t at = (line * made[2] + sweep.first + first * sweep.step) * s.out_channels;
    const float* x = x_ + (image * s.read_size() + a.begin) * s.channels;
    for (const Block& block : t_.blocks) {
      a.x = t_.mixes() ? x : x + block.begin;
      a.weights = weights_ + block.begin * t_.rows() + sweep.tap * t_.depth() * block.width;
      a.bias = bias_ ? bias_ + block.begin : nullptr;
      a.channels = block.channels;
      a.y = y_ + at + block.begin;
      for (int i = 0; i < kMostEndOperands; ++i)
        a.operands[i] = operands_[i] ? operands_[i] + at + block.begin : nullptr;
      block.conv(a);
    }
  }

  // The lines that a line of outputs sees inside the input; returns how many.
  int64_t find_runs(int64_t line, LineRun* runs) const {
    const int64_t *made = t_.made(), *kernel = t_.shape.kernel, *read = t_.read();
    int64_t count = 0, seen_z, seen_y;
    for (int64_t z = 0; z < kernel[0]; ++z)
      for (int64_t y = 0; y < kernel[1] && sees(0, line / made[1] % made[0], z, &seen_z); ++y)
        if (sees(1, line % made[1], y, &seen_y))
          runs[count++] = {(seen_z * read[1] + seen_y) * read[2] * t_.shape.channels,
                           (z * kernel[1] + y) * kernel[2] * t_.depth()};
    return count;
  }
  // Whether kernel position k of output o lies inside the input, and where.
  bool sees(int axis, int64_t o, int64_t k, int64_t* at) const {
    const ConvShape& s = t_.shape;
    if (!s.is_transposed) {
      *at = s.position(axis, o, k);
      return s.is_inside(axis, *at);
    }
    const int64_t spread = o + s.pad_begin[axis] - k * s.dilation[axis];
    *at = spread / s.stride[axis];
    return spread >= 0 && spread % s.stride[axis] == 0 && *at < s.output[axis];
  }

  const Lines& t_;
  const float *const x_, *const weights_, *const bias_, *const zeros_;
  float* const y_;
  const float* operands_[kMostEndOperands] = {};
};

Status launch_lines(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const Lines*>(task.tiling);
  const ConvShape& s = t.shape;
  if (t.workspace_bytes) std::memset(task.workspace(slots), 0, t.workspace_bytes);
  const Launch launch(t, task, slots);
  const int64_t parts = (t.sweeps[0].outputs + t.part - 1) / t.part;
  parallel_for(t.threads, s.batch * t.made()[0] * t.made()[1] * parts,
               [&](int64_t i) { launch.compute(i / parts, i % parts); });
  return Status::kOk;
}

// Weights lie as [output channel][channel][kernel position], with one channel where they are not mixed; transposed ones
// as [channel][output channel][kernel position].
void pack_weights(const Tiling& tiling, const void* const* inputs, void* packed) {
  const auto& t = static_cast<const Lines&>(tiling);
  const ConvShape& s = t.shape;
  const auto* weights = static_cast<const float*>(inputs[1]);
  auto* to = static_cast<float*>(packed);
  const int64_t taps = s.kernel_size(), depth = t.depth();
  const int64_t step = s.is_transposed ? taps : depth * taps;           // from output channel to output channel
  const int64_t deep = s.is_transposed ? s.out_channels * taps : taps;  // from channel to channel
  const std::vector<int64_t> order = order_taps(s);
  for (const Block& block : t.blocks)
    for (int64_t line = 0; line < taps; line += s.kernel[2])
      for (const int64_t tap : order)
        for (int64_t c = 0; c < depth; ++c, to += block.width)
          for (int64_t j = 0; j < block.width; ++j)
            to[j] = j < block.channels ? weights[(block.begin + j) * step + c * deep + line + tap] : 0.0f;
}

}  // namespace

// Measured against oneDNN and against products by kernel position, over some 900 geometries.
bool wants_lines(const TilingContext& ctx, const ConvShape& s, const std::vector<ConvEnd>& ends) {
  const LineKernels* kernels = line_kernels();
  if (!kernels || !ctx.is_constant(1) || !s.is_last) return false;
  if (s.kernel[0] * s.kernel[1] > kMostRuns || s.batch * s.made_size() == 0) return false;
  const auto adds = [](const ConvEnd& e) { return e.kind == ConvEnd::Kind::kAdd; };
  if (std::count_if(ends.begin(), ends.end(), adds) > kMostEndOperands) return false;
  if (s.groups > 1) {
    constexpr int64_t kCrowded = 512;  // channels: neighbours then share a few sets of the L1 cache
    return !s.is_transposed && s.is_depthwise() && s.group_outputs() == 1 && s.dilation[2] == 1 &&
           s.channels % kCrowded != 0 && kernels->narrow.blocks[0].find(false, s.kernel[2], s.stride[2]);
  }
  if (s.is_transposed) {
    constexpr int64_t kManyChannels = 64, kTile = 8, kManyTiles = 8, kMostSweeps = 32;
    const int64_t outputs = s.input[2] / s.stride[2];
    const bool fills = outputs % kTile == 0 || outputs >= kManyTiles * kTile;
    return s.dilation[2] == 1 && s.stride[2] <= kMostSweeps && (fills || s.out_channels < kManyChannels);
  }
  constexpr int64_t kFewOutputs = 24;
  if (s.kernel_size() == 1) return s.batch * s.output_size() >= kFewOutputs;
  // oneDNN computes whole vectors: where that is a fifth more, narrow ones win, with short sums if they need no mask.
  constexpr int64_t kShortTap = 8, kLongLine = 48;
  const int64_t wide = kernels->wide.lanes, narrow = kernels->narrow.lanes;
  if (narrow == wide || s.out_channels % wide > narrow || wants_float_taps(ctx, s)) return false;
  if (s.channels < kShortTap) return s.out_channels == narrow && s.output[2] >= kLongLine;
  return (s.out_channels + wide - 1) / wide * wide * 5 >= s.out_channels * 6;
}

bool waste_lines(const ConvShape& s, const std::vector<ConvEnd>& ends) {
  const auto is_long = [](const ConvEnd& e) {
    return e.kind == ConvEnd::Kind::kSigmoid || e.kind == ConvEnd::Kind::kSwish;
  };
  return 2 * s.out_channels <= line_kernels()->narrow.lanes && std::any_of(ends.begin(), ends.end(), is_long);
}

std::shared_ptr<const Tiling> tile_lines(const TilingContext& ctx, const ConvShape& shape,
                                         const std::vector<ConvEnd>& ends) {
  constexpr int64_t kPartFloats = int64_t{1} << 12, kLeastPart = 48;  // what a part reads stays in the L1 cache
  auto t = create_tiling<Lines>(launch_lines, "vector:lines");
  ConvShape& s = t->shape = shape;
  t->ends = ends;
  t->threads = threads_for(ctx, s.operations());
  if (!s.is_transposed && s.kernel_size() == 1 && s.stride[0] * s.stride[1] * s.stride[2] == 1 && !s.has_padding()) {
    s.input[2] = s.output[2] = s.batch * s.output_size();
    s.input[0] = s.input[1] = s.output[0] = s.output[1] = s.batch = 1;
  }
  const LineKernels& kernels = *line_kernels();
  t->sweeps = make_sweeps(s);
  const int64_t read = t->mixes() ? s.channels : kernels.wide.lanes;  // floats of an input that a block sees
  const int64_t outputs = t->sweeps[0].outputs, stride = t->sweeps[0].stride;
  t->part = std::min(std::max(kPartFloats / (read * stride) / kLeastPart, int64_t{1}) * kLeastPart, outputs);
  // Short lines call for other blocks: with every shape the same ones, weights are packed once.
  t->blocks = make_blocks(kernels, s, s.is_transposed ? t->part : kLeastPart);
  const bool may_leave = s.has_padding() || s.is_transposed;
  if (t->mixes() && may_leave) t->workspace_bytes = static_cast<size_t>(s.channels) * sizeof(float);
  std::vector<uint64_t> words = {0x6C696E6573,
                                 static_cast<uint64_t>(s.out_channels),
                                 static_cast<uint64_t>(s.channels),
                                 static_cast<uint64_t>(s.groups),
                                 static_cast<uint64_t>(s.kernel_size()),
                                 static_cast<uint64_t>(s.is_transposed ? s.kernel[2] : 0),
                                 static_cast<uint64_t>(s.is_transposed ? s.stride[2] : 0)};
  int64_t width = 0;
  for (const Block& block : t->blocks) {
    width += block.width;
    words.push_back(static_cast<uint64_t>(block.width));
  }
  t->packed_bytes = static_cast<size_t>(t->rows() * width) * sizeof(float);
  t->packed_layout = hash_words(words.data(), words.size()) | 1;
  t->pack = pack_weights;
  return t;
}

}  // namespace asc::cpu
