// Convolution of lines: every version that the CPU runs, against plain loops.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "backends/cpu/line_conv.h"

namespace {

using asc::Isa;
using asc::cpu::ConvEnd;
using asc::cpu::LineArgs;
using asc::cpu::LineKernels;
using asc::cpu::LineRun;
using asc::cpu::LineVectors;

struct Line {
  bool mixes = true;
  int64_t taps = 3, stride = 1, dilation = 1, before = 1, width = 9, outputs = 9;
  int64_t x_channels = 5, y_channels = 40;  // of the tensors
  int64_t begin = 0, channels = 8;          // of the block, in y, and where channels are not mixed in x

  int64_t depth() const { return mixes ? x_channels : 1; }
};

float number(std::minstd_rand& random) { return static_cast<float>(random() % 17) - 8.0f; }  // sums stay exact

// Two runs over a plane of three lines, then bias, ReLU, an addition of what y held, and a scale.
void check(const Line& l, const LineVectors& vectors, int64_t count) {
  const asc::cpu::LineConv conv = vectors.blocks[count - 1].find(l.mixes, l.taps, l.stride);
  if (!conv) return;
  std::minstd_rand random(static_cast<uint32_t>(l.taps * 1009 + l.outputs * 31 + l.channels));
  const int64_t wide = count * vectors.lanes, line = l.width * l.x_channels;
  std::vector<float> x(static_cast<size_t>(3 * line)), w(static_cast<size_t>(2 * l.taps * l.depth() * wide));
  std::vector<float> bias(static_cast<size_t>(l.channels)), zeros(static_cast<size_t>(l.depth()), 0.0f);
  std::vector<float> y(static_cast<size_t>(l.outputs * l.y_channels));
  for (std::vector<float>* values : {&x, &w, &bias, &y})
    for (float& v : *values) v = number(random);
  const std::vector<float> old = y;
  const LineRun runs[] = {{0, l.taps * l.depth()}, {2 * line, 0}};
  const ConvEnd ends[] = {{ConvEnd::Kind::kRelu, 0, 0}, {ConvEnd::Kind::kAdd, 0, 0}, {ConvEnd::Kind::kLinear, 2, 1}};
  LineArgs a;
  a.x = x.data() + (l.mixes ? 0 : l.begin) - l.before * l.x_channels;
  a.x_step = l.stride * l.x_channels, a.x_tap = l.dilation * l.x_channels;
  a.stride = l.stride, a.dilation = l.dilation;
  a.begin = -l.before, a.width = l.width;
  a.outputs = l.outputs;
  a.taps = l.taps, a.depth = l.depth();
  a.runs = runs, a.run_count = 2;
  a.zeros = zeros.data();
  a.weights = w.data(), a.bias = bias.data();
  a.channels = l.channels;
  a.y = y.data() + l.begin, a.y_step = l.y_channels;
  a.ends = ends, a.end_count = 3;
  a.operands[0] = a.y;
  conv(a);
  int wrong = 0;
  for (int64_t i = 0; i < l.outputs * l.y_channels; ++i) {
    const int64_t out = i / l.y_channels, c = i % l.y_channels - l.begin;
    float want = old[static_cast<size_t>(i)];
    if (c >= 0 && c < l.channels) {
      float sum = 0;
      for (const LineRun& run : runs)
        for (int64_t k = 0; k < l.taps; ++k) {
          const int64_t at = out * l.stride - l.before + k * l.dilation;
          if (at < 0 || at >= l.width) continue;
          for (int64_t d = 0; d < l.depth(); ++d)
            sum += x[static_cast<size_t>(run.x + at * l.x_channels + (l.mixes ? d : l.begin + c))] *
                   w[static_cast<size_t>((run.row + k * l.depth() + d) * wide + c)];
        }
      want = (std::max(sum + bias[static_cast<size_t>(c)], 0.0f) + want) * 2 + 1;
    }
    wrong += y[static_cast<size_t>(i)] != want;
  }
  CAPTURE(l.taps);
  CAPTURE(l.outputs);
  CAPTURE(l.channels);
  CHECK(wrong == 0);
}

// `f` of what vectors there are: wide and narrow ones of each set.
template <typename F>
void for_each_version(F f) {
  for (const Isa isa : {Isa::kV3, Isa::kV4}) {
    const LineKernels* kernels = isa <= asc::detect_isa() ? asc::cpu::line_kernels_of(isa) : nullptr;
    if (!kernels) continue;
    for (const LineVectors* vectors : {&kernels->wide, &kernels->narrow})
      for (int64_t count = 1; count <= LineVectors::kMostVectors; ++count) f(*vectors, count);
  }
}

// Whole blocks, and blocks of one vector that is not full.
template <typename F>
void for_each_width(const LineVectors& vectors, int64_t count, F f) {
  f(count * vectors.lanes);
  for (int64_t left : {1, 3, 7, 13})
    if (count == 1 && left < vectors.lanes) f(left);
}

TEST_CASE("channels are mixed at every number of outputs, with taps outside of the line") {
  for_each_version([](const LineVectors& vectors, int64_t count) {
    for (const int64_t taps : {1, 2, 3, 5})
      for (const int64_t outputs : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17, 30})
        for (const int64_t stride : {1, 3})
          for_each_width(vectors, count, [&](int64_t channels) {
            Line l;
            l.taps = taps, l.stride = stride, l.dilation = taps == 2 ? 2 : 1, l.before = taps / 2;
            l.outputs = outputs, l.width = (outputs - 1) * stride + 1;
            l.begin = 3, l.channels = channels, l.y_channels = channels + 5;
            check(l, vectors, count);
          });
  });
}

TEST_CASE("windows slide over channels that are kept apart") {
  for_each_version([](const LineVectors& vectors, int64_t count) {
    for (const int64_t taps : {3, 5, 7, 8, 11, 15})
      for (const int64_t outputs : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 14, 15, 29})
        for (const int64_t stride : {1, 2})
          for (const int64_t before : {int64_t{0}, taps / 2, taps})
            for_each_width(vectors, count, [&](int64_t channels) {
              Line l;
              l.mixes = false;
              l.taps = taps, l.stride = stride, l.before = before;
              l.outputs = outputs, l.width = std::max<int64_t>((outputs - 1) * stride - 1, 1);
              l.begin = 2, l.channels = channels, l.x_channels = l.y_channels = channels + 4;
              check(l, vectors, count);
            });
  });
}

}  // namespace
