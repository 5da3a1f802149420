#include "backends/cpu/conv_last.h"

#include <cmath>
#include <limits>

#include "backends/cpu/build_info.h"
#include "backends/cpu/conv_onednn.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/nn.h"
#include "base/hash.h"
#include "ops/channels_last.h"

namespace asc::cpu {
namespace {

constexpr int kConvInputs = 3;  // x, weights, bias

ConvShape make_conv_last_shape(const TilingContext& ctx) {
  const Shape x = channels_first(ctx.input(0));
  if (ctx.node().op == conv_transpose_last_op().name) {
    ConvShape s = make_spreading_shape(ctx, x);
    drop_single_axes(s);
    s.is_last = true;
    return s;
  }
  const Shape& w = ctx.input(1);
  ConvShape s;
  static_cast<PlainWindow&>(s) = make_window_over(ctx, x, w.begin() + 2, false);
  drop_single_axes(s);
  s.batch = x[0];
  s.channels = x[1];
  s.out_channels = w[0];
  s.groups = ctx.attr("group", 1);
  s.has_bias = ctx.has_input(2);
  s.is_last = true;
  return s;
}

// --- channels first and back: where oneDNN refuses
// ---------------------------------------------------------------------

struct TurnedConv : TilingOf<TurnedConv> {
  ConvShape shape;
  std::shared_ptr<const Tiling> inner;
  size_t x_offset = 0, y_offset = 0;  // in the workspace, behind the inner one's
};

// [rows][columns] to [columns][rows], for each of `count` matrices.
void turn(const float* from, int64_t count, int64_t rows, int64_t columns, float* to) {
  for (int64_t i = 0; i < count; ++i, from += rows * columns, to += rows * columns)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
}

Status launch_turned(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const TurnedConv*>(task.tiling);
  const ConvShape& s = t.shape;
  auto* workspace = static_cast<char*>(task.workspace(slots));
  auto* x = reinterpret_cast<float*>(workspace + t.x_offset);
  auto* y = reinterpret_cast<float*>(workspace + t.y_offset);
  turn(task.input<float>(slots, 0), s.batch, s.read_size(), s.channels, x);
  void* own[] = {nullptr, x, slots[task.operands[1]], s.has_bias ? slots[task.operands[2]] : nullptr, y, workspace};
  const uint32_t operands[kConvInputs + 1 + kExtraOperands] = {1, 2, s.has_bias ? 3u : 0u, 4, 5};
  Task inner = task;
  inner.tiling = t.inner.get();
  inner.input_count = kConvInputs;
  inner.operands = operands;
  const Status status = t.inner->launch(inner, own, worker);
  if (status == Status::kOk) turn(y, s.batch, s.out_channels, s.made_size(), task.output<float>(slots, 0));
  return status;
}

std::shared_ptr<const Tiling> tile_turned(const TilingContext& ctx, const ConvShape& s) {
  auto t = create_tiling<TurnedConv>(launch_turned, "channels first");
  t->shape = s;
  t->inner = s.is_transposed    ? tile_fold_conv<float>(s)
             : s.is_depthwise() ? tile_depthwise_conv<float>(s)
                                : tile_column_conv<float>(s, threads_for(ctx, s.operations()));
  t->workspace_bytes = round_up(t->inner->workspace_bytes);
  t->x_offset = t->workspace_bytes;
  t->y_offset = t->x_offset + round_up(static_cast<size_t>(s.batch * s.channels * s.read_size()) * sizeof(float));
  t->workspace_bytes =
      t->y_offset + round_up(static_cast<size_t>(s.batch * s.out_channels * s.made_size()) * sizeof(float));
  return t;
}

}  // namespace

#if ASC_HAVE_ONEDNN

namespace {

using dnnl::memory;

struct ConvLast : Tiling {
  bool has_bias = false;
  int operands = 0;  // behind the convolution's
  memory::desc plain_weights, packed_weights;
  std::unique_ptr<OneDnnPrimitive> convolution;
  size_t bytes() const override { return sizeof(ConvLast) + convolution->bytes(); }
};

constexpr size_t kMostOperands = 4;

Status launch_onednn(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const ConvLast*>(task.tiling);
  void* data[5 + kMostOperands] = {slots[task.operands[0]], const_cast<void*>(task.packed(slots)),
                                   task.output<void>(slots, 0), task.workspace(slots)};
  int count = 4;
  if (t.has_bias) data[count++] = slots[task.operands[2]];
  for (int i = 0; i < t.operands; ++i) data[count++] = slots[task.operands[kConvInputs + i]];
  return t.convolution->execute(data, worker);
}

void pack_weights(const Tiling& tiling, const void* const* inputs, void* packed) {
  const auto& t = static_cast<const ConvLast&>(tiling);
  reorder_now(t.plain_weights, inputs[1], t.packed_weights, packed);
}

memory::desc rows_of_channels(const memory::dims& dims) {
  using tag = memory::format_tag;
  return memory::desc(dims, memory::data_type::f32,
                      dims.size() == 3   ? tag::nwc
                      : dims.size() == 4 ? tag::nhwc
                                         : tag::ndhwc);
}

// x * min(max(x * huge, 0), 1): the library's own function turns NaN into 0.
void append_relu(dnnl::post_ops* to) {
  to->append_eltwise(dnnl::algorithm::eltwise_hardswish, std::numeric_limits<float>::max(), 0);
}

void append_linear(float factor, float shift, dnnl::post_ops* to) {
  to->append_eltwise(dnnl::algorithm::eltwise_linear, factor, shift);
}

// high - relu(high - x), then likewise from below.
void append_clip(float low, float high, dnnl::post_ops* to) {
  if (std::isfinite(high)) {
    append_linear(-1, high, to);
    append_relu(to);
    append_linear(-1, high, to);
  }
  if (!std::isfinite(low)) return;
  if (low != 0) append_linear(1, -low, to);
  append_relu(to);
  if (low != 0) append_linear(1, low, to);
}

void append(const ConvEnd& end, const memory::desc& y, dnnl::post_ops* to) {
  using dnnl::algorithm;
  switch (end.kind) {
    case ConvEnd::Kind::kRelu:
      return end.alpha == 0 ? append_relu(to) : to->append_eltwise(algorithm::eltwise_relu, end.alpha, 0);
    case ConvEnd::Kind::kClip:
      return append_clip(end.alpha, end.beta, to);
    case ConvEnd::Kind::kSigmoid:
      return to->append_eltwise(algorithm::eltwise_logistic, 0, 0);
    case ConvEnd::Kind::kSwish:
      return to->append_eltwise(algorithm::eltwise_swish, 1, 0);
    case ConvEnd::Kind::kHardSwish:
      return to->append_eltwise(algorithm::eltwise_hardswish, 1.0f / 6, 0.5f);
    case ConvEnd::Kind::kLinear:
      return append_linear(end.alpha, end.beta, to);
    case ConvEnd::Kind::kAdd:
      return to->append_binary(algorithm::binary_add, y);
  }
}

// Of a transposed one in the order of its dimensions for oneDNN, output channels first, which is not theirs in memory.
memory::desc plain_weights(const ConvShape& s) {
  if (!s.is_transposed) return plain_desc(weight_dims(s), memory::data_type::f32);
  const memory::desc lying =
      plain_desc(with_spatial({s.groups, s.group_channels(), s.group_outputs()}, s, s.kernel), memory::data_type::f32);
  memory::dims dims = lying.get_dims(), strides = lying.get_strides();
  std::swap(dims[1], dims[2]);
  std::swap(strides[1], strides[2]);
  const int first = s.groups == 1 ? 1 : 0;
  return memory::desc({dims.begin() + first, dims.end()}, memory::data_type::f32,
                      {strides.begin() + first, strides.end()});
}

template <typename Convolution>
std::shared_ptr<const Tiling> create(const ConvShape& s, dnnl::algorithm algorithm, const std::vector<ConvEnd>& ends) {
  const memory::desc w = plain_weights(s);
  const int64_t *read = s.is_transposed ? s.output : s.input, *made = s.is_transposed ? s.input : s.output;
  const memory::desc y = rows_of_channels(with_spatial({s.batch, s.out_channels}, s, made));
  dnnl::post_ops post;
  std::vector<int> added;  // positions of additions
  for (const ConvEnd& end : ends) {
    if (end.kind == ConvEnd::Kind::kAdd) added.push_back(post.len());
    append(end, y, &post);
  }
  if (added.size() > kMostOperands) return nullptr;
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr.set_post_ops(post);
  const typename Convolution::primitive_desc pd(
      onednn_engine(), dnnl::prop_kind::forward_inference, algorithm,
      rows_of_channels(with_spatial({s.batch, s.channels}, s, read)),
      memory::desc(w.get_dims(), memory::data_type::f32, memory::format_tag::any),
      s.has_bias ? plain_desc({s.out_channels}, memory::data_type::f32) : memory::desc(), y, spatial_dims(s, s.stride),
      spatial_dims(s, s.dilation, -1), spatial_dims(s, s.pad_begin), spatial_dims(s, s.pad_end), attr);
  if (is_reference(pd)) return nullptr;
  auto t = std::make_shared<ConvLast>();
  t->launch = launch_onednn;
  t->implementation = "onednn:last";
  t->has_bias = s.has_bias;
  t->plain_weights = w;
  t->packed_weights = pd.weights_desc();
  t->packed_bytes = t->packed_weights.get_size();
  t->packed_layout = layout_hash(t->packed_weights);
  t->pack = pack_weights;
  t->workspace_bytes = pd.scratchpad_desc().get_size();
  std::vector<OneDnnPrimitive::Argument> a = {{DNNL_ARG_SRC, pd.src_desc()},
                                              {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                                              {DNNL_ARG_DST, pd.dst_desc()},
                                              {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}};
  if (s.has_bias) a.push_back({DNNL_ARG_BIAS, pd.bias_desc()});
  for (int at : added) a.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(at) | DNNL_ARG_SRC_1, y});
  t->operands = static_cast<int>(added.size());
  t->convolution = std::make_unique<OneDnnPrimitive>(Convolution(pd), std::move(a));
  return t;
}

}  // namespace

bool has_conv_last() { return current_isa() != Isa::kBase; }

std::shared_ptr<const Tiling> try_conv_last(const TilingContext& ctx, const std::vector<ConvEnd>& ends) {
  const ConvShape s = make_conv_last_shape(ctx);
  if (!s.is_transposed && !ends.empty() && wants_float_taps(ctx, s)) return nullptr;
  if (!ctx.options().use_onednn || !ctx.is_constant(1) || s.batch == 0 || s.input_size() == 0) return nullptr;
  const OpenMpThreads threads(threads_for(ctx, s.operations()));
  try {
    if (s.is_transposed) return create<dnnl::deconvolution_forward>(s, dnnl::algorithm::deconvolution_direct, ends);
    return create<dnnl::convolution_forward>(s, dnnl::algorithm::convolution_direct, ends);
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

#else

bool has_conv_last() { return false; }

std::shared_ptr<const Tiling> try_conv_last(const TilingContext&, const std::vector<ConvEnd>&) { return nullptr; }

#endif

std::shared_ptr<const Tiling> tile_conv_last(const TilingContext& ctx) {
  if (count_of(ctx.output(0)) == 0) return create_empty_tiling();
  ConvShape s = make_conv_last_shape(ctx);
  if (!s.is_transposed && wants_float_taps(ctx, s)) return tile_float_taps(s);
  if (auto t = try_conv_last(ctx, {})) return t;
  s.is_last = false;  // as the convolution behind the turning sees it
  return tile_turned(ctx, s);
}

void register_conv_last(KernelRegistry& registry) {
  registry.add(conv_last_op().name, DType::kFloat32, tile_conv_last);
  registry.add(conv_transpose_last_op().name, DType::kFloat32, tile_conv_last);
}

}  // namespace asc::cpu
