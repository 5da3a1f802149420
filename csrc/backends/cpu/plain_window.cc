#include "backends/cpu/plain_window.h"

#include <algorithm>
#include <utility>

#include "ops/window.h"

namespace asc::cpu {
namespace {

// The indices i in [0, count) with from <= first + i * step < to.
IndexRange indices_inside(int64_t count, int64_t first, int64_t step, int64_t from, int64_t to) {
  const auto divide_up = [step](int64_t a) { return a <= 0 ? 0 : step == 1 ? a : (a + step - 1) / step; };
  const int64_t low = std::min(divide_up(from - first), count);
  return {low, std::clamp(divide_up(to - first), low, count)};
}

void check_axes(const TilingContext& ctx) {
  const int spatial = ctx.input(0).rank() - 2;
  if (spatial < 1 || spatial > kWindowAxes)
    ctx.unsupported("input " + ctx.input(0).text() + " has not one to three spatial axes; reshape it");
}

PlainWindow pad_axes(const Shape& x, const WindowGeometry& g) {
  PlainWindow w;
  w.spatial = g.spatial;
  for (int i = 0; i < kWindowAxes; ++i) {
    const int axis = i - (kWindowAxes - w.spatial);
    const bool is_real = axis >= 0;
    w.input[i] = is_real ? x[axis + 2] : 1;
    w.output[i] = is_real ? g.output[axis] : 1;
    w.kernel[i] = is_real ? g.kernel[axis] : 1;
    w.stride[i] = is_real ? g.stride[axis] : 1;
    w.dilation[i] = is_real ? g.dilation[axis] : 1;
    w.pad_begin[i] = is_real ? g.pad_begin[axis] : 0;
    w.pad_end[i] = is_real ? g.pad_end[axis] : 0;
  }
  return w;
}

}  // namespace

PlainWindow make_plain_window(const TilingContext& ctx, const int64_t* kernel, bool is_pooling) {
  return make_window_over(ctx, ctx.input(0), kernel, is_pooling);
}

PlainWindow make_window_over(const TilingContext& ctx, const Shape& x, const int64_t* kernel, bool is_pooling) {
  check_axes(ctx);
  return pad_axes(x, window_geometry(ctx, x, kernel, is_pooling));
}

void drop_single_axes(PlainWindow& w) {
  const auto is_single = [&w] {
    constexpr int last = kWindowAxes - 1;
    return w.input[last] == 1 && w.kernel[last] == 1 && w.output[last] == 1 && w.pad_begin[last] == 0;
  };
  for (; w.spatial > 1 && is_single(); --w.spatial)
    for (int64_t* axes : {w.input, w.output, w.kernel, w.stride, w.dilation, w.pad_begin, w.pad_end}) {
      std::rotate(axes, axes + kWindowAxes - 1, axes + kWindowAxes);
      axes[0] = axes == w.pad_begin || axes == w.pad_end ? 0 : 1;
    }
}

PlainWindow make_row_window(const TilingContext& ctx, const Shape& x) {
  if (ctx.attributes().get_string("mode", "") != "global")
    return make_window_over(ctx, x, ctx.attributes().get_ints("kernel_shape").data(), true);
  constexpr int64_t kLineElements = 2048;  // of the first-level cache
  int64_t line = x[x.rank() - 1];
  while (line > 1 && line * x[1] > kLineElements) line = line % 2 == 0 ? line / 2 : 1;
  PlainWindow w;
  w.spatial = kWindowAxes;
  const int64_t extents[kWindowAxes] = {x.span_of(2, x.rank()) / std::max<int64_t>(line, 1), 1, line};
  for (int i = 0; i < kWindowAxes; ++i) {
    w.input[i] = w.kernel[i] = extents[i];
    w.output[i] = w.stride[i] = w.dilation[i] = 1;
    w.pad_begin[i] = w.pad_end[i] = 0;
  }
  return w;
}

PlainWindow make_spreading_window(const TilingContext& ctx, const Shape& x, const int64_t* kernel) {
  check_axes(ctx);
  PlainWindow w = pad_axes(x, transposed_geometry(ctx, x, kernel));
  std::swap(w.input, w.output);
  return w;
}

IndexRange inside_line(const PlainWindow& w, int64_t begin, int64_t outputs, int64_t k) {
  return indices_inside(outputs, w.position(2, begin, k), w.stride[2], 0, w.input[2]);
}

IndexRange inside_kernel(const PlainWindow& w, int axis, int64_t o, int64_t from, int64_t to) {
  return indices_inside(w.kernel[axis], w.position(axis, o, 0), w.dilation[axis], from, to);
}

std::vector<int64_t> count_positions(const PlainWindow& w, int axis, bool includes_padding) {
  const int64_t low = includes_padding ? -w.pad_begin[axis] : 0;
  const int64_t high = w.input[axis] + (includes_padding ? w.pad_end[axis] : 0);
  std::vector<int64_t> counts(static_cast<size_t>(w.output[axis]));
  for (int64_t o = 0; o < w.output[axis]; ++o) {
    const IndexRange r = inside_kernel(w, axis, o, low, high);
    counts[static_cast<size_t>(o)] = r.high - r.low;
  }
  return counts;
}

}  // namespace asc::cpu
