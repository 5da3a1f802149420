// Resolution of window attributes, as Conv and the pooling operators of ONNX define it.
#include "ops/window.h"

#include <algorithm>

#include "ops/infer.h"

namespace asc {
namespace {

// Keeps every product below 2^63.
constexpr int64_t kMaxWindow = int64_t{1} << 30;

enum class AutoPad { kNone, kSameUpper, kSameLower, kValid };

AutoPad read_auto_pad(const ShapeContext& ctx) {
  const std::string_view mode = ctx.attributes().get_string("auto_pad", "NOTSET");
  if (mode == "NOTSET" || mode.empty()) return AutoPad::kNone;
  if (mode == "SAME_UPPER") return AutoPad::kSameUpper;
  if (mode == "SAME_LOWER") return AutoPad::kSameLower;
  if (mode == "VALID") return AutoPad::kValid;
  fail_shape(ctx, message("auto_pad is '", mode, "'; expected NOTSET, SAME_UPPER, SAME_LOWER or VALID"));
}

// An attribute of `count` numbers, each at least `low`; `fallback` for all of them when absent.
void read_list(const ShapeContext& ctx, const char* name, int count, int64_t low, int64_t fallback, int64_t* to) {
  const std::vector<int64_t>& list = ctx.attributes().get_ints(name);
  const auto size = static_cast<int64_t>(list.size());
  if (size != 0 && size != count) fail_shape(ctx, message(name, " has ", size, " entries; expected ", count));
  for (int i = 0; i < count; ++i) {
    to[i] = size ? list[i] : fallback;
    if (to[i] < low || to[i] > kMaxWindow)
      fail_shape(ctx, message(name, " has ", to[i], " at position ", i, "; expected ", low, " to ", kMaxWindow));
  }
}

// Windows that start in the input or in the padding before it, 0 where none fits; with ceil_mode the last one may
// overhang the end, and so may the only one.
int64_t count_windows(int64_t dim, int64_t before, int64_t after, int64_t window, int64_t stride, bool is_ceil) {
  const int64_t slack = dim + before + after - window;
  if (slack < 0) return is_ceil && slack > -stride && dim > 0 ? 1 : 0;
  if (!is_ceil) return slack / stride + 1;
  const int64_t count = (slack + stride - 1) / stride + 1;
  return (count - 1) * stride >= dim + before ? count - 1 : count;
}

void resolve_axis(const ShapeContext& ctx, const Shape& x, int i, AutoPad mode, bool is_ceil, WindowGeometry& g) {
  const int64_t dim = x[i + 2], stride = g.stride[i];
  const int64_t window = (g.kernel[i] - 1) * g.dilation[i] + 1;
  if (dim > kMaxElements) fail_shape(ctx, message("input ", x, " is too large"));
  if (mode == AutoPad::kSameUpper || mode == AutoPad::kSameLower) {
    g.output[i] = (dim + stride - 1) / stride;
    const int64_t total = std::max<int64_t>((g.output[i] - 1) * stride + window - dim, 0);
    g.pad_begin[i] = mode == AutoPad::kSameUpper ? total / 2 : total - total / 2;
    g.pad_end[i] = total - g.pad_begin[i];
    return;
  }
  if (mode == AutoPad::kValid) g.pad_begin[i] = g.pad_end[i] = 0;
  const int64_t padded = dim + g.pad_begin[i] + g.pad_end[i];
  g.output[i] = count_windows(dim, g.pad_begin[i], g.pad_end[i], window, stride, is_ceil);
  if (g.output[i] == 0)
    fail_shape(ctx, message("window of ", window, " (kernel ", g.kernel[i], ", dilation ", g.dilation[i], ") on axis ",
                            i + 2, " of ", x, " is larger than the padded size ", padded));
}

// Kernel, strides, dilations and pads as given.
WindowGeometry read_windows(const ShapeContext& ctx, const Shape& x, const int64_t* kernel) {
  WindowGeometry g;
  g.spatial = x.rank() - 2;
  for (int i = 0; i < g.spatial; ++i) {
    g.kernel[i] = kernel[i];
    if (kernel[i] < 1 || kernel[i] > kMaxWindow)
      fail_shape(ctx, message("kernel size ", kernel[i], " on axis ", i + 2, "; expected 1 to ", kMaxWindow));
  }
  read_list(ctx, "strides", g.spatial, 1, 1, g.stride);
  read_list(ctx, "dilations", g.spatial, 1, 1, g.dilation);
  int64_t pads[2 * kMaxSpatial];
  read_list(ctx, "pads", 2 * g.spatial, 0, 0, pads);
  for (int i = 0; i < g.spatial; ++i) g.pad_begin[i] = pads[i], g.pad_end[i] = pads[g.spatial + i];
  return g;
}

// `wanted`: the output size that the node asks for, or -1.
void spread_axis(const ShapeContext& ctx, const Shape& x, int i, AutoPad mode, int64_t extra, int64_t wanted,
                 WindowGeometry& g) {
  const int64_t dim = x[i + 2];
  if (dim > kMaxElements / kMaxWindow) fail_shape(ctx, message("input ", x, " is too large"));
  const int64_t full = (dim - 1) * g.stride[i] + (g.kernel[i] - 1) * g.dilation[i] + 1 + extra;
  if (mode == AutoPad::kValid) g.pad_begin[i] = g.pad_end[i] = 0;
  const bool is_same = mode == AutoPad::kSameUpper || mode == AutoPad::kSameLower;
  if (wanted < 0 && is_same) wanted = dim * g.stride[i];
  if (wanted >= 0) {
    const int64_t cut = std::max<int64_t>(full - wanted, 0);
    g.pad_begin[i] = mode == AutoPad::kSameUpper ? cut / 2 : cut - cut / 2;
    g.pad_end[i] = cut - g.pad_begin[i];
  }
  g.output[i] = wanted >= 0 ? wanted : full - g.pad_begin[i] - g.pad_end[i];
  if (g.output[i] < 0 || dim == 0)
    fail_shape(ctx, message("axis ", i + 2, " of ", x, " would get size ", g.output[i], "; check pads and strides"));
}

}  // namespace

WindowGeometry window_geometry(const ShapeContext& ctx, const Shape& x, const int64_t* kernel, bool is_pooling) {
  WindowGeometry g = read_windows(ctx, x, kernel);
  const AutoPad mode = read_auto_pad(ctx);
  const bool is_ceil = is_pooling && flag(ctx, "ceil_mode", false);
  for (int i = 0; i < g.spatial; ++i) {
    resolve_axis(ctx, x, i, mode, is_ceil, g);
    const int64_t window = (g.kernel[i] - 1) * g.dilation[i] + 1;
    if (is_pooling && std::max(g.pad_begin[i], g.pad_end[i]) >= window)
      fail_shape(ctx, message("pads ", g.pad_begin[i], " and ", g.pad_end[i], " on axis ", i + 2,
                              " are not smaller than the window of ", window, "; it would see padding only"));
  }
  return g;
}

WindowGeometry transposed_geometry(const ShapeContext& ctx, const Shape& x, const int64_t* kernel) {
  WindowGeometry g = read_windows(ctx, x, kernel);
  const AutoPad mode = read_auto_pad(ctx);
  int64_t extra[kMaxSpatial], wanted[kMaxRank];
  read_list(ctx, "output_padding", g.spatial, 0, 0, extra);
  const size_t count = ctx.attributes().get_ints("output_shape").size();
  // Some exporters give all dimensions; only the spatial ones say anything.
  const int first = count == static_cast<size_t>(x.rank()) ? 2 : 0;
  if (count > 0) read_list(ctx, "output_shape", g.spatial + first, 0, 0, wanted);
  for (int i = 0; i < g.spatial; ++i) spread_axis(ctx, x, i, mode, extra[i], count ? wanted[first + i] : -1, g);
  return g;
}

void check_kernel_shape(const ShapeContext& ctx, const Shape& w) {
  const std::vector<int64_t>& declared = ctx.attributes().get_ints("kernel_shape");
  if (!declared.empty() && !std::equal(declared.begin(), declared.end(), w.begin() + 2, w.end()))
    fail_shape(ctx, message("kernel_shape has other sizes than weight ", w, "; drop it or correct it"));
}

}  // namespace asc
