// Convolution of float32 rows of channels: sums for neighbouring outputs of a line stay in registers, with what follows
// them. One version per instruction set; weights are packed by blocks of output channels.
#pragma once

#include <cstdint>

#include "backends/cpu/conv_end.h"
#include "backends/cpu/isa.h"

namespace asc::cpu {

// A line of the input under a line of the kernel.
struct LineRun {
  int64_t x = 0;    // floats from what an output begins at to its first tap
  int64_t row = 0;  // of the weights of that tap
};

// Neighbouring outputs of a line, and of the channels of one block. Where channels are mixed, a tap is `depth` floats
// times as many rows of the weights; where they are not, it is a row of channels times one row of weights.
struct LineArgs {
  const float* x = nullptr;  // what the first output begins at; may lie before the line
  int64_t x_step = 0;        // floats from output to output
  int64_t x_tap = 0;         // floats from tap to tap
  int64_t stride = 1, dilation = 1;
  int64_t begin = 0, width = 0;  // position of the first tap of the first output; taps in [0, width) lie inside
  int64_t outputs = 0;
  int64_t taps = 0, depth = 1;
  const LineRun* runs = nullptr;
  int64_t run_count = 0;
  const float* zeros = nullptr;    // depth of them, where channels are mixed and taps may lie outside
  const float* weights = nullptr;  // rows of the block, as wide as its vectors
  const float* bias = nullptr;     // of the block; null: none
  int64_t channels = 0;            // fewer than the vectors have: in blocks of one vector only
  float* y = nullptr;
  int64_t y_step = 0;
  const ConvEnd* ends = nullptr;
  int end_count = 0;
  const float* operands[kMostEndOperands] = {};  // of additions, in their order; they lie as y does, and may be y
};

using LineConv = void (*)(const LineArgs& args);

// The code for blocks of so many vectors. Null: there is none.
struct LineBlock {
  static constexpr int64_t kTaps[] = {3, 5, 7};  // of lines over which windows slide
  static constexpr int64_t kMostStride = 2;
  LineConv mixing = nullptr;
  int tile = 0;                           // outputs that mixing computes at once; half as many where a line has fewer
  LineConv sliding[3][kMostStride] = {};  // channels are not mixed, dilation is 1; by taps, then stride less one
  LineConv sliding_far = nullptr;         // of any other number of taps above five, stride 1

  LineConv find(bool mixes, int64_t taps, int64_t stride) const {
    if (mixes) return mixing;
    for (int i = 0; i < 3; ++i)
      if (kTaps[i] == taps && stride <= kMostStride) return sliding[i][stride - 1];
    return taps > kTaps[1] && stride == 1 ? sliding_far : nullptr;
  }
};

// The code for vectors of one width, by the vectors of a block, less one; narrower blocks have all that wider ones
// have.
struct LineVectors {
  static constexpr int kMostVectors = 4;
  int lanes = 0;
  LineBlock blocks[kMostVectors] = {};
};

struct LineKernels {
  LineVectors wide, narrow;  // narrow.lanes <= wide.lanes
};

// The version of current_isa(), or of one set; null where there is none. Results depend on the values and the extents
// only. NaN propagates. Sums are made in the order of the weights' rows, then bias and ends.
const LineKernels* line_kernels();
const LineKernels* line_kernels_of(Isa isa);

}  // namespace asc::cpu
