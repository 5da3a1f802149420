// Operators on signals: DFT and STFT.
#include "ops/signal.h"

#include "ops/infer.h"
#include "ops/type_rules.h"

namespace asc {
namespace {

// Tables and work of a transform take some dozens of bytes for each element of its length.
constexpr int64_t kMaxLength = int64_t{1} << 23;

void check_length(const ShapeContext& ctx, const char* what, int64_t length) {
  if (length < 1 || length > kMaxLength) fail_shape(ctx, message(what, " is ", length, "; expected 1 to ", kMaxLength));
}

// Real or complex samples, by the last dimension.
int64_t parts_of(const ShapeContext& ctx, const Shape& x) {
  const int64_t parts = x[x.rank() - 1];
  if (parts != 1 && parts != 2)
    fail_shape(ctx, message("input 0 has shape ", x, "; expected a last dimension of 1 (real) or 2 (complex)"));
  return parts;
}

int64_t bins_of(bool is_onesided, int64_t length) { return is_onesided ? length / 2 + 1 : length; }

void infer_dft(InferContext& ctx) {
  int axis = 0;
  const DftGeometry g = dft_geometry(ctx, &axis);
  Shape out = ctx.input(0);
  out[axis] = g.bins;
  out[out.rank() - 1] = g.out_parts;
  check_size(ctx, out);
  ctx.set_output(0, out);
}

void infer_stft(InferContext& ctx) {
  const DftGeometry g = stft_geometry(ctx);
  const Shape out{g.outer, g.inner, g.bins, 2};
  check_size(ctx, out);
  ctx.set_output(0, out);
}

DType dft_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  check_type(node, inputs, 0, kFloats);
  for (size_t i : {1, 2}) check_type(node, inputs, i, kIndexTypes);
  return inputs[0];
}

DType stft_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  check_type(node, inputs, 0, kFloats);
  check_same(node, inputs, 2);
  for (size_t i : {1, 3}) check_type(node, inputs, i, kIndexTypes);
  return inputs[0];
}

}  // namespace

DftGeometry dft_geometry(const ShapeContext& ctx, int* axis) {
  const Shape& x = ctx.input(0);
  if (x.rank() < 2) fail_shape(ctx, message("input 0 has shape ", x, "; expected [..., samples, 1 or 2]"));
  DftGeometry g;
  g.is_inverse = flag(ctx, "inverse", false);
  g.is_onesided = flag(ctx, "onesided", false);
  g.in_parts = parts_of(ctx, x);
  g.out_parts = g.is_irfft() ? 1 : 2;
  if (g.is_irfft() && g.in_parts != 2)
    fail_shape(ctx, message("inverse and onesided with real input ", x, "; expected a last dimension of 2 (complex)"));
  const int rank = x.rank();
  *axis = static_cast<int>(normalize_axis(ctx.has_input(2) ? host_int(ctx, 2) : -2, rank, ctx));
  if (*axis == rank - 1) fail_shape(ctx, message("axis is the last one of ", x, ", which holds the parts of samples"));
  const int64_t samples = x[*axis];
  if (ctx.has_input(1)) {
    g.length = host_int(ctx, 1);
    check_length(ctx, "dft_length", g.length);
  } else if (samples > 0 || g.is_onesided) {
    g.length = g.is_irfft() ? checked_product(ctx, 2, samples - 1) : samples;
    check_length(ctx, "the length of the transform", g.length);
  }
  g.bins = g.is_irfft() ? g.length : bins_of(g.is_onesided, g.length);
  g.given = std::min(samples, g.is_irfft() ? g.length / 2 + 1 : g.length);
  g.outer = x.span_of(0, *axis);
  g.inner = x.span_of(*axis + 1, rank - 1);
  g.in_inner_step = g.in_parts;
  g.in_step = g.inner * g.in_parts;
  g.in_outer_step = samples * g.in_step;
  g.out_inner_step = g.out_parts;
  g.out_step = g.inner * g.out_parts;
  g.out_outer_step = checked_product(ctx, g.bins, g.out_step);
  return g;
}

DftGeometry stft_geometry(const ShapeContext& ctx) {
  const Shape& x = ctx.input(0);
  if (x.rank() != 2 && x.rank() != 3)
    fail_shape(ctx, message("signal has shape ", x, "; expected [batch, samples] or [batch, samples, 1 or 2]"));
  DftGeometry g;
  g.is_framed = true;
  g.is_onesided = flag(ctx, "onesided", true);
  g.in_parts = x.rank() == 2 ? 1 : parts_of(ctx, x);
  const int64_t step = host_int(ctx, 1), samples = x[1];
  if (step < 1) fail_shape(ctx, message("frame_step is ", step, "; expected 1 or more"));
  if (ctx.has_input(2)) check_rank(ctx, 2, 1);
  g.length = ctx.has_input(3) ? host_int(ctx, 3) : ctx.has_input(2) ? ctx.input(2)[0] : samples;
  check_length(ctx, "the length of a frame", g.length);
  if (ctx.has_input(2) && ctx.input(2)[0] != g.length)
    fail_shape(ctx, message("window ", ctx.input(2), " and frame_length ", g.length, "; expected the same length"));
  if (g.length > samples)
    fail_shape(ctx, message("signal ", x, " is shorter than a frame of ", g.length, "; pad the signal"));
  g.given = g.length;
  g.bins = bins_of(g.is_onesided, g.length);
  g.outer = x[0];
  g.inner = (samples - g.length) / step + 1;
  g.in_step = g.in_parts;
  g.in_inner_step = g.inner > 1 ? step * g.in_parts : 0;
  g.in_outer_step = samples * g.in_parts;
  g.out_step = 2;
  g.out_inner_step = g.bins * 2;
  g.out_outer_step = checked_product(ctx, g.inner, g.out_inner_step);
  return g;
}

void register_signal_ops(OpRegistry& r) {
  r.add(OpDef("DFT", 1, 3, infer_dft, dft_type).reads_host({1, 2}));
  r.add(OpDef("STFT", 2, 4, infer_stft, stft_type).reads_host({1, 3}));
}

}  // namespace asc
