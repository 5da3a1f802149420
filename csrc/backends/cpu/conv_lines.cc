// Convolution with channels last, with what follows it, by our own code: where channels are few, or not mixed, oneDNN
// multiplies vectors of which a part is padding, or waits for memory. Positions whose windows lie inside the input are
// computed in tiles, the others one by one over what they see.
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

struct Lines : Tiling {
  ConvShape shape;
  std::vector<ConvEnd> ends;
  std::vector<Block> blocks;
  int64_t part = 0;  // outputs of a line that are computed together
  int threads = 1;

  size_t bytes() const override {
    return sizeof(Lines) + ends.capacity() * sizeof(ConvEnd) + blocks.capacity() * sizeof(Block);
  }
  bool mixes() const { return !shape.is_depthwise(); }
  int64_t depth() const { return mixes() ? shape.channels : 1; }  // rows of the weights for each tap
  int64_t rows() const { return depth() * shape.kernel_size(); }
};

// Blocks of as equal a width as can be; what does not fill a vector, or only half of one, is a block of its own.
std::vector<Block> make_blocks(const LineKernels& kernels, const ConvShape& s) {
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
  while (most < LineVectors::kMostVectors && find(wide, most + 1)) ++most;
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

  // Outputs [first, first + outputs) of a line; lines of all images are numbered one behind the other.
  void compute(int64_t line, int64_t first, int64_t outputs) const {
    const ConvShape& s = t_.shape;
    const int64_t image = line / (s.output[0] * s.output[1]), at = (line * s.output[2] + first) * s.out_channels;
    LineRun runs[kMostRuns];
    LineArgs a;
    a.x_step = s.stride[2] * s.channels;
    a.x_tap = s.dilation[2] * s.channels;
    a.stride = s.stride[2], a.dilation = s.dilation[2];
    a.begin = s.position(2, first, 0), a.width = s.input[2];
    a.outputs = outputs;
    a.taps = s.kernel[2], a.depth = t_.depth();
    a.runs = runs;
    a.run_count = find_runs(line, runs);
    a.zeros = zeros_;
    a.y_step = s.out_channels;
    a.ends = t_.ends.data();
    a.end_count = static_cast<int>(t_.ends.size());
    const float* x = x_ + (image * s.input_size() + a.begin) * s.channels;
    for (const Block& block : t_.blocks) {
      a.x = t_.mixes() ? x : x + block.begin;
      a.weights = weights_ + block.begin * t_.rows();
      a.bias = bias_ ? bias_ + block.begin : nullptr;
      a.channels = block.channels;
      a.y = y_ + at + block.begin;
      for (int i = 0; i < kMostEndOperands; ++i)
        a.operands[i] = operands_[i] ? operands_[i] + at + block.begin : nullptr;
      block.conv(a);
    }
  }

 private:
  // The lines that a line of outputs sees inside the input; returns how many.
  int64_t find_runs(int64_t line, LineRun* runs) const {
    const ConvShape& s = t_.shape;
    const int64_t out_z = line / s.output[1] % s.output[0], out_y = line % s.output[1];
    const IndexRange depth = inside_kernel(s, 0, out_z), height = inside_kernel(s, 1, out_y);
    int64_t count = 0;
    for (int64_t z = depth.low; z < depth.high; ++z)
      for (int64_t y = height.low; y < height.high; ++y)
        runs[count++] = {(s.position(0, out_z, z) * s.input[1] + s.position(1, out_y, y)) * s.input[2] * s.channels,
                         (z * s.kernel[1] + y) * s.kernel[2] * t_.depth()};
    return count;
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
  const int64_t parts = (s.output[2] + t.part - 1) / t.part;
  parallel_for(t.threads, s.batch * s.output[0] * s.output[1] * parts, [&](int64_t i) {
    const int64_t first = i % parts * t.part;
    launch.compute(i / parts, first, std::min(t.part, s.output[2] - first));
  });
  return Status::kOk;
}

// Weights lie as [output channel][channel][kernel position], of one channel where they are not mixed.
void pack_weights(const Tiling& tiling, const void* const* inputs, void* packed) {
  const auto& t = static_cast<const Lines&>(tiling);
  const auto* weights = static_cast<const float*>(inputs[1]);
  auto* to = static_cast<float*>(packed);
  const int64_t taps = t.shape.kernel_size(), depth = t.depth();
  for (const Block& block : t.blocks)
    for (int64_t tap = 0; tap < taps; ++tap)
      for (int64_t c = 0; c < depth; ++c, to += block.width)
        for (int64_t j = 0; j < block.width; ++j)
          to[j] = j < block.channels ? weights[((block.begin + j) * depth + c) * taps + tap] : 0.0f;
}

}  // namespace

// Measured against oneDNN and against products by kernel position, over some 600 geometries.
bool wants_lines(const TilingContext& ctx, const ConvShape& s, const std::vector<ConvEnd>& ends) {
  const LineKernels* kernels = line_kernels();
  if (!kernels || !ctx.is_constant(1) || s.is_transposed || !s.is_last) return false;
  if (s.kernel[0] * s.kernel[1] > kMostRuns || s.batch * s.output_size() == 0) return false;
  const auto adds = [](const ConvEnd& e) { return e.kind == ConvEnd::Kind::kAdd; };
  if (std::count_if(ends.begin(), ends.end(), adds) > kMostEndOperands) return false;
  if (s.groups > 1) {
    constexpr int64_t kLeastLine = 4, kCrowded = 512;  // channels: neighbours then share a few sets of the L1 cache
    return s.is_depthwise() && s.group_outputs() == 1 && s.dilation[2] == 1 && s.output[2] >= kLeastLine &&
           s.channels % kCrowded != 0 && kernels->narrow.blocks[0].find(false, s.kernel[2], s.stride[2]);
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

std::shared_ptr<const Tiling> tile_lines(const TilingContext& ctx, const ConvShape& shape,
                                         const std::vector<ConvEnd>& ends) {
  constexpr int64_t kPartFloats = int64_t{1} << 12, kLeastPart = 48;  // what a part reads stays in the L1 cache
  auto t = create_tiling<Lines>(launch_lines, "vector:lines");
  ConvShape& s = t->shape = shape;
  t->ends = ends;
  t->threads = threads_for(ctx, s.operations());
  if (s.kernel_size() == 1 && s.stride[0] * s.stride[1] * s.stride[2] == 1 && !s.has_padding()) {
    s.input[2] = s.output[2] = s.batch * s.output_size();
    s.input[0] = s.input[1] = s.output[0] = s.output[1] = s.batch = 1;
  }
  const LineKernels& kernels = *line_kernels();
  t->blocks = make_blocks(kernels, s);
  const int64_t read = t->mixes() ? s.channels : kernels.wide.lanes;  // floats of an input that a block sees
  t->part = std::min(std::max(kPartFloats / (read * s.stride[2]) / kLeastPart, int64_t{1}) * kLeastPart, s.output[2]);
  if (t->mixes() && s.has_padding()) t->workspace_bytes = static_cast<size_t>(s.channels) * sizeof(float);
  int64_t width = 0;
  for (const Block& block : t->blocks) width += block.width;
  t->packed_bytes = static_cast<size_t>(t->rows() * width) * sizeof(float);
  const uint64_t words[] = {0x6C696E6573, static_cast<uint64_t>(s.out_channels), static_cast<uint64_t>(s.channels),
                            static_cast<uint64_t>(s.groups), static_cast<uint64_t>(s.kernel_size())};
  t->packed_layout = hash_words(words, 5) | 1;
  t->pack = pack_weights;
  return t;
}

}  // namespace asc::cpu
