#include "backends/cpu/conv.h"

#include "backends/cpu/bfloat16.h"
#include "backends/cpu/half_adaptor.h"
#include "backends/cpu/nn.h"
#include "ops/half.h"

namespace asc::cpu {
namespace {

// Measured: oneDNN's call and reorders cost as much as this many operations of the plain loops.
constexpr double kSmallConv = 5e4;

// What rounding to bfloat16 and reordering cost, measured likewise.
constexpr double kLargeConv = 1e6;

bool wants_onednn(const TilingContext& ctx, const ConvShape& s) {
  if (!ctx.options().use_onednn) return false;
  // One product on the plain layout beats reordering, if only there are enough positions for full vectors.
  if (s.kernel_size() == 1 && s.groups == 1 && s.output_size() >= 128) return false;
  return s.operations() >= kSmallConv;
}

template <typename T>
std::shared_ptr<const Tiling> tile_plain(const TilingContext& ctx, const ConvShape& s) {
  return s.is_depthwise() ? tile_depthwise_conv<T>(s) : tile_column_conv<T>(s, threads_for(ctx, s.operations()));
}

std::shared_ptr<const Tiling> tile_float(const TilingContext& ctx) {
  const ConvShape s = make_conv_shape(ctx);
  if (count_of(ctx.output(0)) == 0) return create_empty_tiling();
  if (wants_float_taps(ctx, s)) return tile_float_taps(s);
  if (wants_signal(ctx, s)) return tile_signal(s);
  if (wants_dots(ctx, s)) return tile_dots(s, threads_for(ctx, s.operations()));
  if (wants_onednn(ctx, s)) {
    if (auto t = try_onednn_conv(ctx, s)) return t;
  }
  return tile_plain<float>(ctx, s);
}

std::shared_ptr<const Tiling> tile_double(const TilingContext& ctx) {
  const ConvShape s = make_conv_shape(ctx);
  if (count_of(ctx.output(0)) == 0) return create_empty_tiling();
  return tile_plain<double>(ctx, s);
}

// Weights are bfloat16.
std::shared_ptr<const Tiling> tile_bfloat16(const TilingContext& ctx) {
  if (multiplies_bfloat16(ctx) && ctx.is_constant(1) && count_of(ctx.output(0)) != 0) {
    const ConvShape s = make_conv_shape(ctx);
    if (s.operations() >= kLargeConv && !s.is_depthwise())
      if (auto t = try_onednn_conv(ctx, s)) return t;
  }
  return create_half_tiling(ctx, tile_float, 0b010);
}

}  // namespace

bool ConvShape::is_pointwise() const {
  for (int i = 0; i < kWindowAxes; ++i)
    if (kernel[i] != 1 || stride[i] != 1) return false;
  return !has_padding();
}

ConvShape make_conv_shape(const TilingContext& ctx) {
  const Shape &x = ctx.input(0), &w = ctx.input(1);
  ConvShape s;
  static_cast<PlainWindow&>(s) = make_plain_window(ctx, w.begin() + 2, false);
  drop_single_axes(s);
  s.batch = x[0];
  s.channels = x[1];
  s.out_channels = w[0];
  s.groups = ctx.attr("group", 1);
  s.has_bias = ctx.has_input(2);
  return s;
}

void register_conv(KernelRegistry& registry) {
  registry.add("Conv", DType::kFloat32, tile_float);
  registry.add("Conv", kHalfFloats, tile_half<tile_float, 0b010>);
  registry.add("Conv", DType::kFloat64, tile_double);
  registry.add(bfloat16_product_op("Conv")->name, DType::kFloat32, tile_bfloat16);
}

}  // namespace asc::cpu
