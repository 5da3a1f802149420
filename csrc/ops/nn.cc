// Convolution, pooling, normalisation, softmax, LSTM, GRU and RNN.
#include "ops/infer.h"
#include "ops/type_rules.h"
#include "ops/window.h"

namespace asc {
namespace {

void check_spatial(const ShapeContext& ctx, const Shape& x) {
  if (x.rank() < 3) fail_shape(ctx, message("input has shape ", x, "; expected [batch, channels, spatial...]"));
}

// Input i is [size].
void check_vector(const ShapeContext& ctx, int i, int64_t size) {
  if (ctx.has_input(i) && ctx.input(i) != Shape{size})
    fail_shape(ctx, message("input ", i, " has shape ", ctx.input(i), "; expected [", size, "]"));
}

void set_windows(InferContext& ctx, const WindowGeometry& g, int64_t channels) {
  Shape out{ctx.input(0)[0], channels};
  for (int i = 0; i < g.spatial; ++i) out.push_back(g.output[i]);
  check_size(ctx, out);
  ctx.set_output(0, out);
}

// The weight `w` of a convolution over `x`.
void check_kernel(const ShapeContext& ctx, const Shape& x, const Shape& w) {
  if (w.rank() != x.rank()) fail_shape(ctx, message("weight ", w, " and input ", x, "; expected equal ranks"));
  for (int64_t d : w)
    if (d < 1) fail_shape(ctx, message("weight ", w, " is empty"));
  check_kernel_shape(ctx, w);
}

// X [n, c, spatial], W [m, c / group, kernel].
void set_convolution(InferContext& ctx) {
  const Shape& x = ctx.input(0);
  const Shape& w = ctx.input(1);
  check_spatial(ctx, x);
  check_kernel(ctx, x, w);
  const int64_t group = ctx.attr("group", 1);
  if (group < 1 || x[1] % group != 0 || x[1] / group != w[1] || w[0] % group != 0)
    ctx.fail(message("input ", x, ", weight ", w, ", group ", group, "; expected weight [m, channels / group, ...], m ",
                     "divisible by group"));
  set_windows(ctx, window_geometry(ctx, x, w.begin() + 2, false), w[0]);
}

// X, W, B [m].
void infer_conv(InferContext& ctx) {
  set_convolution(ctx);
  check_vector(ctx, 2, ctx.input(1)[0]);
}

// X, W, the zero points of X (one) and of W (one, or one for each output channel).
void infer_conv_integer(InferContext& ctx) {
  set_convolution(ctx);
  const int64_t outputs = ctx.input(1)[0];
  for (int i : {2, 3}) {
    if (!ctx.has_input(i) || ctx.input(i).num_elements() == 1) continue;
    if (i == 2 || ctx.input(i) != Shape{outputs})
      ctx.fail(message("zero point ", ctx.input(i), " of operand ", i - 2, "; expected one number",
                       i == 2 ? "" : ", or [", i == 2 ? "" : std::to_string(outputs) + "]"));
  }
}

DType conv_integer_type(const Node& node, const std::vector<DType>& inputs, int) {
  constexpr DTypeSet kBytes = DTypeSet(DType::kInt8) | DTypeSet(DType::kUInt8);
  check_arity(node, inputs);
  for (size_t i : {0, 1}) {
    check_type(node, inputs, i, kBytes);
    check_same(node, inputs, i + 2, i);
  }
  return DType::kInt32;
}

// X [n, c, spatial], W [c, m / group, kernel], B [m].
void infer_conv_transpose(InferContext& ctx) {
  const Shape& x = ctx.input(0);
  const Shape& w = ctx.input(1);
  check_spatial(ctx, x);
  const int64_t group = ctx.attr("group", 1);
  check_kernel(ctx, x, w);
  if (group < 1 || x[1] != w[0] || x[1] % group != 0)
    ctx.fail(message("input ", x, ", weight ", w, ", group ", group, "; expected weight [channels, m / group, ...], ",
                     "channels divisible by group"));
  const int64_t channels = checked_product(ctx, w[1], group);
  check_vector(ctx, 2, channels);
  set_windows(ctx, transposed_geometry(ctx, x, w.begin() + 2), channels);
}

void infer_pool(InferContext& ctx) {
  const Shape& x = ctx.input(0);
  check_spatial(ctx, x);
  const std::vector<int64_t>& kernel = ctx.attributes().get_ints("kernel_shape");
  if (kernel.size() != static_cast<size_t>(x.rank() - 2))
    ctx.fail(message("kernel_shape has ", static_cast<int64_t>(kernel.size()), " entries for input ", x));
  set_windows(ctx, window_geometry(ctx, x, kernel.data(), true), x[1]);
}

// The second output: where in the whole input each maximum lies.
void infer_max_pool(InferContext& ctx) {
  infer_pool(ctx);
  ctx.set_output(1, ctx.output(0));
}

void infer_global_pool(InferContext& ctx) {
  Shape out = ctx.input(0);
  check_spatial(ctx, out);
  for (int i = 2; i < out.rank(); ++i) {
    if (out[i] == 0) ctx.fail(message("spatial axis ", i, " of ", out, " is empty; nothing to pool"));
    out[i] = 1;
  }
  ctx.set_output(0, out);
}

// scale, bias, mean and variance have one element for each channel; a vector has one channel.
void infer_batch_norm(InferContext& ctx) {
  const Shape& x = ctx.input(0);
  if (x.rank() == 0) ctx.fail("input is a scalar; expected [batch, channels, ...]");
  if (ctx.attr("training_mode", 0) != 0) fail_unsupported(ctx, "training_mode is 1; export the model for inference");
  const int64_t channels = x.rank() > 1 ? x[1] : 1;
  for (int i = 1; i <= 4; ++i) check_vector(ctx, i, channels);
  ctx.set_output(0, x);
}

void infer_instance_norm(InferContext& ctx) {
  const Shape& x = ctx.input(0);
  check_spatial(ctx, x);
  check_vector(ctx, 1, x[1]);
  check_vector(ctx, 2, x[1]);
  ctx.set_output(0, x);
}

// Scale and bias have the shape of the normalised axes, with any number of leading 1s.
void check_norm_operand(const ShapeContext& ctx, const Shape& x, int axis, int i) {
  if (!ctx.has_input(i)) return;
  const Shape& s = ctx.input(i);
  const int offset = x.rank() - s.rank();
  bool fits = offset >= 0 && offset <= axis;
  for (int d = 0; fits && d < s.rank(); ++d) fits = s[d] == (d + offset < axis ? 1 : x[d + offset]);
  if (fits) return;
  check_broadcasts_to(ctx, s, x, "scale or bias");
  fail_unsupported(ctx, message("input ", i, " of shape ", s, " is broadcast inside the normalised axes, from ", axis,
                                " on, of ", x, "; expand it"));
}

void infer_layer_norm(InferContext& ctx) {
  const Shape& x = ctx.input(0);
  const int axis = static_cast<int>(normalize_axis(ctx.attr("axis", -1), x.rank(), ctx));
  check_norm_operand(ctx, x, axis, 1);
  check_norm_operand(ctx, x, axis, 2);
  ctx.set_output(0, x);
}

void infer_softmax(InferContext& ctx) {
  normalize_axis(ctx.attr("axis", -1), ctx.input(0).rank(), ctx);
  ctx.set_output(0, ctx.input(0));
}

int64_t read_directions(const ShapeContext& ctx) {
  const std::string_view direction = ctx.attributes().get_string("direction", "forward");
  if (direction == "forward" || direction == "reverse") return 1;
  if (direction == "bidirectional") return 2;
  fail_shape(ctx, message("direction is '", direction, "'; expected forward, reverse or bidirectional"));
}

void check_shape(const ShapeContext& ctx, int i, const Shape& wanted) {
  if (ctx.has_input(i) && ctx.input(i) != wanted)
    fail_shape(ctx, message("input ", i, " has shape ", ctx.input(i), "; expected ", wanted));
}

// X [steps, batch, in], then the optional B, sequence_lens, initial_h, initial_c and P.
void infer_lstm_of(InferContext& ctx, int64_t directions, int64_t hidden) {
  const Shape& x = ctx.input(0);
  check_shape(ctx, 3, Shape{directions, 8 * hidden});
  check_shape(ctx, 4, Shape{x[1]});
  check_shape(ctx, 5, Shape{directions, x[1], hidden});
  check_shape(ctx, 6, Shape{directions, x[1], hidden});
  check_shape(ctx, 7, Shape{directions, 3 * hidden});
  const Shape all{x[0], directions, x[1], hidden};
  check_size(ctx, all);
  ctx.set_output(0, all);
  ctx.set_output(1, Shape{directions, x[1], hidden});
  ctx.set_output(2, Shape{directions, x[1], hidden});
}

// The hidden size, where R has it on `axis`.
int64_t read_hidden(InferContext& ctx, int axis) {
  if (ctx.attr("layout", 0) != 0) fail_unsupported(ctx, "layout is 1; transpose the operands to layout 0");
  check_rank(ctx, 0, 3);
  check_rank(ctx, 2, 3);
  const int64_t hidden = ctx.attr("hidden_size", ctx.input(2)[axis]);
  if (hidden < 1 || hidden > INT32_MAX) ctx.fail(message("hidden_size is ", hidden, "; expected 1 or more"));
  return hidden;
}

// W [directions, 4 h, in], R [directions, 4 h, h].
void infer_lstm(InferContext& ctx) {
  const int64_t hidden = read_hidden(ctx, 2), directions = read_directions(ctx);
  check_shape(ctx, 1, Shape{directions, 4 * hidden, ctx.input(0)[2]});
  check_shape(ctx, 2, Shape{directions, 4 * hidden, hidden});
  infer_lstm_of(ctx, directions, hidden);
}

// W [directions, in, 4 h], R [directions, h, 4 h], and behind the operands of an LSTM scale and zero point of W, then
// of R: [directions] or [directions, 4 h].
void infer_quantized_lstm(InferContext& ctx) {
  const int64_t hidden = read_hidden(ctx, 1), directions = read_directions(ctx);
  if (!ctx.has_input(8) || !ctx.has_input(10)) ctx.fail("inputs 8 and 10, the scales of W and R, must be given");
  check_shape(ctx, 1, Shape{directions, ctx.input(0)[2], 4 * hidden});
  check_shape(ctx, 2, Shape{directions, hidden, 4 * hidden});
  for (int i = 8; i < 12; ++i)
    if (ctx.has_input(i) && ctx.input(i) != Shape{directions}) check_shape(ctx, i, Shape{directions, 4 * hidden});
  infer_lstm_of(ctx, directions, hidden);
}

DType quantized_lstm_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  const auto bytes = DTypeSet(DType::kInt8) | DTypeSet(DType::kUInt8);
  for (size_t i : {1, 2, 9, 11}) check_type(node, inputs, i, bytes);
  for (size_t i : {2, 9, 11}) check_same(node, inputs, i, 1);
  for (size_t i : {0, 3, 5, 6, 7, 8, 10}) check_type(node, inputs, i, DType::kFloat32);
  check_type(node, inputs, 4, DType::kInt32);
  return DType::kFloat32;
}

// LSTM, GRU and RNN.
DType recurrent_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  check_type(node, inputs, 0, kFloats);
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (i == 4)
      check_type(node, inputs, i, DType::kInt32);
    else
      check_same(node, inputs, i);
  }
  return inputs[0];
}

// X [steps, batch, in], W [directions, gates * h, in], R [directions, gates * h, h], then the optional B, sequence_lens
// and initial_h. A GRU has three gates, an RNN is one.
template <int64_t kGates>
void infer_gated(InferContext& ctx) {
  const int64_t hidden = read_hidden(ctx, 2), directions = read_directions(ctx);
  const Shape& x = ctx.input(0);
  check_shape(ctx, 1, Shape{directions, kGates * hidden, x[2]});
  check_shape(ctx, 2, Shape{directions, kGates * hidden, hidden});
  check_shape(ctx, 3, Shape{directions, 2 * kGates * hidden});
  check_shape(ctx, 4, Shape{x[1]});
  check_shape(ctx, 5, Shape{directions, x[1], hidden});
  const Shape all{x[0], directions, x[1], hidden};
  check_size(ctx, all);
  ctx.set_output(0, all);
  ctx.set_output(1, Shape{directions, x[1], hidden});
}

void register_norm_ops(OpRegistry& r) {
  r.add(OpDef("BatchNormalization", 5, 5, infer_batch_norm, same_type<kFloats>));
  r.add(OpDef("InstanceNormalization", 3, 3, infer_instance_norm, same_type<kFloats>));
  r.add(OpDef("LayerNormalization", 2, 3, infer_layer_norm, same_type<kFloats>));
  r.add(OpDef("RMSNormalization", 2, 2, infer_layer_norm, same_type<kFloats>));
  r.add(OpDef("Softmax", 1, 1, infer_softmax, same_type<kFloats>));
  r.add(OpDef("LogSoftmax", 1, 1, infer_softmax, same_type<kFloats>));
}

constexpr DTypeSet kMaxPoolTypes = kFloats | DTypeSet(DType::kInt8) | DTypeSet(DType::kUInt8);

DType max_pool_type(const Node& node, const std::vector<DType>& inputs, int output) {
  const DType type = same_type<kMaxPoolTypes>(node, inputs, output);
  return output == 1 ? DType::kInt64 : type;
}

}  // namespace

void register_nn_ops(OpRegistry& r) {
  register_norm_ops(r);
  r.add(OpDef("Conv", 2, 3, infer_conv, same_type<kFloats>));
  r.add(OpDef("ConvInteger", 2, 4, infer_conv_integer, conv_integer_type));
  r.add(OpDef("ConvTranspose", 2, 3, infer_conv_transpose, same_type<kFloats>));
  r.add(OpDef("MaxPool", 1, 1, infer_max_pool, max_pool_type).outputs(1, 2));
  r.add(OpDef("AveragePool", 1, 1, infer_pool, same_type<kFloats>));
  r.add(OpDef("GlobalAveragePool", 1, 1, infer_global_pool, same_type<kFloats>));
  r.add(OpDef("GlobalMaxPool", 1, 1, infer_global_pool, same_type<kFloats>));
  r.add(OpDef("LSTM", 3, 8, infer_lstm, recurrent_type).outputs(1, 3));
  r.add(OpDef("DynamicQuantizeLSTM", 3, 12, infer_quantized_lstm, quantized_lstm_type).outputs(1, 3));
  r.add(OpDef("GRU", 3, 6, infer_gated<3>, recurrent_type).outputs(1, 2));
  r.add(OpDef("RNN", 3, 6, infer_gated<1>, recurrent_type).outputs(1, 2));
}

}  // namespace asc
