#include "ops/channels_last.h"

#include "ops/infer.h"
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

// x with channels first.
Shape convolved(InferContext& ctx) {
  const Shape& w = ctx.input(1);
  if (ctx.input(0).rank() != w.rank() || w.rank() < 3)
    ctx.fail(message("weight ", w, " and input ", ctx.input(0), "; expected equal ranks, 3 or more"));
  check_kernel_shape(ctx, w);
  return channels_first(ctx.input(0));
}

}  // namespace

void infer_conv_last(InferContext& ctx) {
  const Shape& w = ctx.input(1);
  const Shape x = convolved(ctx);
  const int64_t group = ctx.attr("group", 1);
  if (group < 1 || x[1] % group != 0 || x[1] / group != w[1] || w[0] % group != 0)
    ctx.fail(message("input ", x, ", weight ", w, ", group ", group, "; expected weight [m, channels / group, ...], m ",
                     "divisible by group"));
  set_windows(ctx, x, window_geometry(ctx, x, w.begin() + 2, false), w[0]);
}

void infer_conv_transpose_last(InferContext& ctx) {
  const Shape& w = ctx.input(1);
  const Shape x = convolved(ctx);
  const int64_t group = ctx.attr("group", 1);
  if (group < 1 || x[1] != w[0] || x[1] % group != 0)
    ctx.fail(message("input ", x, ", weight ", w, ", group ", group, "; expected weight [channels, m / group, ...], ",
                     "channels divisible by group"));
  set_windows(ctx, x, transposed_geometry(ctx, x, w.begin() + 2), checked_product(ctx, w[1], group));
}

void infer_pool_last(InferContext& ctx) {
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

const Op& conv_last_op() {
  static const Op kOp = OpDef("ConvLast", 2, 3, infer_conv_last, first_type);
  return kOp;
}

const Op& conv_transpose_last_op() {
  static const Op kOp = OpDef("ConvTransposeLast", 2, 3, infer_conv_transpose_last, first_type);
  return kOp;
}

const Op& pool_last_op() {
  static const Op kOp = OpDef("PoolLast", 1, 1, infer_pool_last, first_type);
  return kOp;
}

Shape channels_first(const Shape& x) {
  Shape s{x[0], x[x.rank() - 1]};
  for (int i = 1; i + 1 < x.rank(); ++i) s.push_back(x[i]);
  return s;
}

}  // namespace asc
