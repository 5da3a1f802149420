#include "ops/quantized.h"

#include "ops/infer.h"
#include "ops/matmul.h"
#include "ops/window.h"

namespace asc {
namespace {

DType first_type(const Node&, const std::vector<DType>& inputs, int) { return inputs[0]; }

void set_windows(InferContext& ctx, const Shape& x, const WindowGeometry& g, int64_t channels) {
  Shape out{x[0]};
  for (int i = 0; i < g.spatial; ++i) out.push_back(g.output[i]);
  out.push_back(channels);
  check_size(ctx, out);
  ctx.set_output(0, out);
}

// Scales and zero points: one number, of the weights also one for each output. The kernels rely on it.
void check_numbers(const InferContext& ctx, int64_t outputs) {
  for (int i = kQuantXZero; i < kQuantInputs; ++i) {
    if (!ctx.has_input(i)) continue;
    const int64_t count = ctx.input(i).num_elements();
    const bool is_by_output = i == kQuantWZero || i == kQuantScale || i == kQuantBias;
    if ((i != kQuantBias && count == 1) || (is_by_output && count == outputs)) continue;
    ctx.fail(message("a zero point, scale or bias has shape ", ctx.input(i), "; expected ",
                     is_by_output ? "one number for each of " + std::to_string(outputs) + " outputs" : "one number"));
  }
}

void infer_quantized_matmul(InferContext& ctx) {
  infer_matmul(ctx);
  const Shape& w = ctx.input(kQuantW);
  check_numbers(ctx, w.rank() > 1 ? w[w.rank() - 1] : 1);
}

void infer_quantized_conv(InferContext& ctx) {
  const Shape& w = ctx.input(kQuantW);
  if (ctx.input(0).rank() != w.rank() || w.rank() < 3)
    ctx.fail(message("weight ", w, " and input ", ctx.input(0), "; expected equal ranks, 3 or more"));
  check_numbers(ctx, w[0]);
  const Shape x = channels_first(ctx.input(0));
  const int64_t group = ctx.attr("group", 1);
  if (group < 1 || x[1] % group != 0 || x[1] / group != w[1] || w[0] % group != 0)
    ctx.fail(message("input ", x, ", weight ", w, ", group ", group, "; expected weight [m, channels / group, ...], m ",
                     "divisible by group"));
  set_windows(ctx, x, window_geometry(ctx, x, w.begin() + 2, false), w[0]);
}

void infer_byte_pool(InferContext& ctx) {
  Shape x = ctx.input(0);
  if (x.rank() < 3) ctx.fail(message("input has shape ", x, "; expected [batch, spatial..., channels]"));
  if (ctx.attributes().get_string("mode", "") == "global") {
    for (int i = 1; i + 1 < x.rank(); ++i) {
      if (x[i] == 0) ctx.fail(message("spatial axis ", i, " of ", x, " is empty; nothing to pool"));
      x[i] = 1;
    }
    ctx.set_output(0, x);
    return;
  }
  x = channels_first(x);
  const std::vector<int64_t>& kernel = ctx.attributes().get_ints("kernel_shape");
  if (kernel.size() != static_cast<size_t>(x.rank() - 2))
    ctx.fail(message("kernel_shape has ", static_cast<int64_t>(kernel.size()), " entries for input ", x));
  set_windows(ctx, x, window_geometry(ctx, x, kernel.data(), true), x[1]);
}

}  // namespace

const Op& quantized_conv_op() {
  static const Op kOp = OpDef("QuantizedConv", 2, kQuantInputs, infer_quantized_conv, first_type);
  return kOp;
}

const Op& quantized_matmul_op() {
  static const Op kOp = OpDef("QuantizedMatMul", 2, kQuantInputs, infer_quantized_matmul, first_type);
  return kOp;
}

const Op& byte_pool_op() {
  static const Op kOp = OpDef("BytePool", 1, 5, infer_byte_pool, first_type);
  return kOp;
}

Shape channels_first(const Shape& x) {
  Shape s{x[0], x[x.rank() - 1]};
  for (int i = 1; i + 1 < x.rank(); ++i) s.push_back(x[i]);
  return s;
}

}  // namespace asc
