#include "backends/cpu/conv_bytes.h"

#include <cstring>
#include <limits>

#include "backends/cpu/quantize.h"
#include "backends/cpu/vec_table.h"

namespace asc::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// What a line of the kernel sees is one long piece of few channels, of which oneDNN would block each by itself.
bool is_line(const ConvShape& s) {
  constexpr int64_t kFewChannels = 2, kLongKernel = 16;
  return s.groups == 1 && s.channels <= kFewChannels && s.kernel[2] >= kLongKernel && s.dilation[2] == 1;
}

std::shared_ptr<const Tiling> tile_quantized_conv(const TilingContext& ctx) {
  const ByteConv c = make_byte_conv(ctx);
  if (count_of(ctx.output(0)) == 0) return create_empty_tiling();
  if (ctx.options().use_onednn && !c.has_w_zeros && c.w_type == DType::kInt8 && !is_line(c.shape)) {
    if (auto t = try_onednn_conv(ctx, c)) return t;
  }
  if (c.scales && c.shape.is_depthwise() && c.shape.group_outputs() == 1)
    return tile_tap_conv(c, threads_for(ctx, c.operations()));
  return tile_row_conv(c, threads_for(ctx, c.operations()));
}

}  // namespace

bool ByteConv::has_bounds() const { return low != -kInfinity || high != kInfinity; }

void store_reals(const ByteConv& c, float* reals, float y_scale, int32_t y_zero, void* y, int64_t n) {
  const auto count = static_cast<size_t>(n);
  if (c.has_bounds()) vec_table().clip(reals, reals, count, c.low, c.high);
  if (c.rounds())
    vec_table().quantize_bytes(reals, static_cast<uint8_t*>(y), count, y_scale, static_cast<float>(y_zero),
                               c.y_type == DType::kInt8 ? -128.0f : 0.0f);
  else
    std::memcpy(y, reals, count * sizeof(float));
}

ByteConv make_byte_conv(const TilingContext& ctx) {
  const Shape x = channels_first(ctx.input(0));
  const Shape& w = ctx.input(kQuantW);
  ByteConv c;
  static_cast<PlainWindow&>(c.shape) = make_window_over(ctx, x, w.begin() + 2, false);
  c.shape.batch = x[0];
  c.shape.channels = x[1];
  c.shape.out_channels = w[0];
  c.shape.groups = ctx.attr("group", 1);
  c.shape.has_bias = ctx.has_input(kQuantBias);
  c.x_type = ctx.dtype(0);
  c.w_type = ctx.dtype(kQuantW);
  c.y_type = ctx.output_dtype(0);
  c.has_x_zero = ctx.has_input(kQuantXZero);
  c.has_w_zeros = ctx.has_input(kQuantWZero);
  c.has_column_zeros = c.has_w_zeros && count_of(ctx.input(kQuantWZero)) != 1;
  c.has_y_zero = ctx.has_input(kQuantYZero);
  c.scales = ctx.has_input(kQuantScale) ? count_of(ctx.input(kQuantScale)) : 0;
  c.low = static_cast<float>(ctx.attributes().get_float("low", -kInfinity));
  c.high = static_cast<float>(ctx.attributes().get_float("high", kInfinity));
  return c;
}

void register_quantized_conv(KernelRegistry& registry) {
  registry.add(quantized_conv_op().name, DType::kInt8 | DType::kUInt8, tile_quantized_conv);
}

}  // namespace asc::cpu
