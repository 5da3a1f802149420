// Convolution with channels last by oneDNN, with what follows. Its ReLU and Clip turn NaN into a bound. Where nothing
// that a result is made of can be NaN, infinite, or so large that the result is, that is no matter: launches look at
// what they read, and otherwise compute the convolution alone, then what follows by our own functions.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "backends/cpu/build_info.h"
#include "backends/cpu/conv_last.h"
#include "backends/cpu/conv_onednn.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/vec_table.h"

namespace asc::cpu {

#if ASC_HAVE_ONEDNN

namespace {

using dnnl::memory;

// Sums of magnitudes below are tame: their products are finite, also times what may follow before a bound.
constexpr float kTame = 1e15f;
constexpr double kMostGain = 1e6;

memory::desc rows_of_channels(const memory::dims& dims) {
  using tag = memory::format_tag;
  return memory::desc(dims, memory::data_type::f32,
                      dims.size() == 3   ? tag::nwc
                      : dims.size() == 4 ? tag::nhwc
                                         : tag::ndhwc);
}

void append(const ConvEnd& end, const memory::desc& y, dnnl::post_ops* to) {
  using dnnl::algorithm;
  switch (end.kind) {
    case ConvEnd::Kind::kRelu:
      return to->append_eltwise(algorithm::eltwise_relu, end.alpha, 0);
    case ConvEnd::Kind::kClip:
      return to->append_eltwise(algorithm::eltwise_clip, end.alpha, end.beta);
    case ConvEnd::Kind::kSigmoid:
      return to->append_eltwise(algorithm::eltwise_logistic, 0, 0);
    case ConvEnd::Kind::kSwish:
      return to->append_eltwise(algorithm::eltwise_swish, 1, 0);
    case ConvEnd::Kind::kHardSwish:
      return to->append_eltwise(algorithm::eltwise_hardswish, 1.0f / 6, 0.5f);
    case ConvEnd::Kind::kLinear:
      return to->append_eltwise(algorithm::eltwise_linear, end.alpha, end.beta);
    case ConvEnd::Kind::kAdd:
      return to->append_binary(algorithm::binary_add, y);
  }
}

void apply(const ConvEnd& end, const float* operand, float* y, size_t n) {
  const VecTable& v = vec_table();
  switch (end.kind) {
    case ConvEnd::Kind::kRelu:
      return end.alpha == 0 ? v.relu(y, y, n) : v.leaky_relu(y, y, n, end.alpha, 0);
    case ConvEnd::Kind::kClip:
      return v.clip(y, y, n, end.alpha, end.beta);
    case ConvEnd::Kind::kSigmoid:
      return v.sigmoid(y, y, n);
    case ConvEnd::Kind::kSwish:
      return v.swish(y, y, n, 1, 0);
    case ConvEnd::Kind::kHardSwish:
      return v.hard_swish(y, y, n);
    case ConvEnd::Kind::kLinear:
      return v.scale_shift(y, y, n, end.alpha, end.beta);
    case ConvEnd::Kind::kAdd:
      return v.add.vv(y, operand, y, n);
  }
}

bool bounds(const ConvEnd& end) {
  return end.kind == ConvEnd::Kind::kClip || (end.kind == ConvEnd::Kind::kRelu && end.alpha == 0);
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

// Whether the primitive makes 0 of NaN: the library's convolutions by way of products, and its transposed ones, may do
// so in a Sigmoid.
bool loses_nan(const ConvShape& s, const std::vector<ConvEnd>& ends, const dnnl::primitive_desc_base& primitive) {
  const auto is_sigmoid = [](const ConvEnd& e) { return e.kind == ConvEnd::Kind::kSigmoid; };
  if (std::none_of(ends.begin(), ends.end(), is_sigmoid)) return false;
  return s.is_transposed || std::string_view(primitive.impl_info_str()).find("gemm") != std::string_view::npos;
}

// A primitive, and the memory that its arguments need.
struct Made {
  memory::desc weights;
  size_t scratchpad = 0;  // bytes; those of a primitive without ends are the library's
  std::unique_ptr<OneDnnPrimitive> primitive;
};

struct ConvLast : Tiling {
  ConvShape shape;
  std::vector<ConvEnd> ends;
  bool is_bounded = false;  // some end turns NaN into a bound
  int watched = 0;          // operands that are added before the last such end
  int operands = 0;         // behind the convolution's
  int threads = 1;
  memory::desc plain_weights, packed_weights;
  std::unique_ptr<OneDnnPrimitive> convolution;
  mutable std::atomic<OneDnnPrimitive*> alone{nullptr};  // without ends; owned

  ~ConvLast() override { delete alone.load(); }
  size_t bytes() const override { return sizeof(ConvLast) + convolution->bytes() * (is_bounded ? 2 : 1); }
  // Behind the packed weights: the sum of their magnitudes.
  size_t sum_offset() const { return round_up(packed_weights.get_size()); }
  size_t made_count() const { return static_cast<size_t>(shape.batch * shape.out_channels * shape.made_size()); }
};

// Without ends: of weights as they are packed, whatever the library has for them. With them, null where it has
// reference code only, or code that loses NaN.
template <typename Convolution>
Made make(const ConvLast& t, dnnl::algorithm algorithm, bool has_ends, const memory::desc& weights) {
  const ConvShape& s = t.shape;
  const int64_t *read = s.is_transposed ? s.output : s.input, *made = s.is_transposed ? s.input : s.output;
  const memory::desc y = rows_of_channels(with_spatial({s.batch, s.out_channels}, s, made));
  dnnl::post_ops post;
  std::vector<int> added;  // positions of additions
  for (size_t i = 0; has_ends && i < t.ends.size(); ++i) {
    if (t.ends[i].kind == ConvEnd::Kind::kAdd) added.push_back(post.len());
    append(t.ends[i], y, &post);
  }
  dnnl::primitive_attr attr;
  if (has_ends) attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr.set_post_ops(post);
  const typename Convolution::primitive_desc pd(
      onednn_engine(), dnnl::prop_kind::forward_inference, algorithm,
      rows_of_channels(with_spatial({s.batch, s.channels}, s, read)), weights,
      s.has_bias ? plain_desc({s.out_channels}, memory::data_type::f32) : memory::desc(), y, spatial_dims(s, s.stride),
      spatial_dims(s, s.dilation, -1), spatial_dims(s, s.pad_begin), spatial_dims(s, s.pad_end), attr);
  if (has_ends && (is_reference(pd) || loses_nan(s, t.ends, pd))) return {};
  std::vector<OneDnnPrimitive::Argument> a = {
      {DNNL_ARG_SRC, pd.src_desc()}, {DNNL_ARG_WEIGHTS, pd.weights_desc()}, {DNNL_ARG_DST, pd.dst_desc()}};
  if (s.has_bias) a.push_back({DNNL_ARG_BIAS, pd.bias_desc()});
  for (int at : added) a.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(at) | DNNL_ARG_SRC_1, y});
  if (has_ends) a.push_back({DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()});
  return {pd.weights_desc(), pd.scratchpad_desc().get_size(),
          std::make_unique<OneDnnPrimitive>(Convolution(pd), std::move(a))};
}

Made make(const ConvLast& t, bool has_ends, const memory::desc& weights) {
  if (t.shape.is_transposed)
    return make<dnnl::deconvolution_forward>(t, dnnl::algorithm::deconvolution_direct, has_ends, weights);
  return make<dnnl::convolution_forward>(t, dnnl::algorithm::convolution_direct, has_ends, weights);
}

// NaN is not less than anything.
bool is_tame(const float* x, size_t n, int threads) {
  constexpr int64_t kUnit = int64_t{1} << 14;
  const auto count = static_cast<int64_t>(n), parts = count < 4 * kUnit ? int64_t{1} : int64_t{threads};
  if (parts == 1) return vec_table().sum_abs(x, n) < kTame;
  std::atomic<bool> holds{true};
  parallel_for(threads, parts, [&](int64_t i) {
    const Part p = part_of(count, kUnit, parts, i);
    const float sum = vec_table().sum_abs(x + p.begin, static_cast<size_t>(p.end - p.begin));
    if (!(sum < kTame / static_cast<float>(parts))) holds = false;
  });
  return holds;
}

// Whether no number is NaN or infinite up to the last bound.
bool is_tame(const ConvLast& t, const Task& task, void* const* slots) {
  const ConvShape& s = t.shape;
  float weights;
  std::memcpy(&weights, static_cast<const char*>(task.packed(slots)) + t.sum_offset(), sizeof weights);
  if (!(weights < kTame)) return false;
  if (s.has_bias && !is_tame(task.input<float>(slots, 2), static_cast<size_t>(s.out_channels), 1)) return false;
  for (int i = 0; i < t.watched; ++i)
    if (!is_tame(task.input<float>(slots, kConvInputs + i), t.made_count(), t.threads)) return false;
  return is_tame(task.input<float>(slots, 0), static_cast<size_t>(s.batch * s.read_size() * s.channels), t.threads);
}

// Made by whoever needs it first. Throws what the library throws.
const OneDnnPrimitive& find_alone(const ConvLast& t) {
  if (const OneDnnPrimitive* known = t.alone.load()) return *known;
  const OpenMpThreads threads(t.threads);
  std::unique_ptr<OneDnnPrimitive> mine = make(t, false, t.packed_weights).primitive;
  OneDnnPrimitive* other = nullptr;
  return t.alone.compare_exchange_strong(other, mine.get()) ? *mine.release() : *other;
}

Status launch_apart(const ConvLast& t, const Task& task, void* const* slots, void* const* data, Worker& worker) {
  try {
    const Status status = find_alone(t).execute(data, worker);
    if (status != Status::kOk) return status;
  } catch (const std::exception& e) {
    return worker.fail(Status::kFailed, std::string("[onednn] a convolution of NaN or huge numbers failed: ") +
                                            e.what() + "; disable use_onednn to run without it");
  }
  int operand = kConvInputs;
  for (const ConvEnd& end : t.ends)
    apply(end, end.kind == ConvEnd::Kind::kAdd ? task.input<float>(slots, operand++) : nullptr,
          task.output<float>(slots, 0), t.made_count());
  return Status::kOk;
}

Status launch_onednn(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const ConvLast*>(task.tiling);
  void* data[5 + kMostEndOperands] = {slots[task.operands[0]], const_cast<void*>(task.packed(slots)),
                                      task.output<void>(slots, 0)};
  int count = 3;
  if (t.shape.has_bias) data[count++] = slots[task.operands[2]];
  if (t.is_bounded && !is_tame(t, task, slots)) return launch_apart(t, task, slots, data, worker);
  for (int i = 0; i < t.operands; ++i) data[count++] = slots[task.operands[kConvInputs + i]];
  data[count] = task.workspace(slots);
  return t.convolution->execute(data, worker);
}

void pack_weights(const Tiling& tiling, const void* const* inputs, void* packed) {
  const auto& t = static_cast<const ConvLast&>(tiling);
  reorder_now(t.plain_weights, inputs[1], t.packed_weights, packed);
  if (!t.is_bounded) return;
  const size_t count = t.plain_weights.get_size() / sizeof(float);
  const float sum = vec_table().sum_abs(static_cast<const float*>(inputs[1]), count);
  std::memcpy(static_cast<char*>(packed) + t.sum_offset(), &sum, sizeof sum);
}

// False where what follows cannot be done.
bool set_ends(const std::vector<ConvEnd>& ends, ConvLast* t) {
  double gain = 1;
  for (const ConvEnd& end : ends) {
    t->operands += end.kind == ConvEnd::Kind::kAdd;
    if (end.kind == ConvEnd::Kind::kLinear)
      gain *= std::max({1.0, std::fabs(double{end.alpha}), std::fabs(double{end.beta})});
    if (!bounds(end)) continue;
    if (!(gain <= kMostGain)) return false;
    t->is_bounded = true;
    t->watched = t->operands;
  }
  t->ends = ends;
  return t->operands <= kMostEndOperands;
}

std::shared_ptr<const Tiling> create(const ConvShape& s, const std::vector<ConvEnd>& ends, int threads) {
  auto t = std::make_shared<ConvLast>();
  t->shape = s;
  t->threads = threads;
  if (!set_ends(ends, t.get())) return nullptr;
  t->plain_weights = plain_weights(s);
  const memory::dims dims = t->plain_weights.get_dims();
  Made made = make(*t, true, memory::desc(dims, memory::data_type::f32, memory::format_tag::any));
  if (!made.primitive) return nullptr;
  t->convolution = std::move(made.primitive);
  t->launch = launch_onednn;
  t->implementation = "onednn:last";
  t->packed_weights = made.weights;
  t->packed_bytes = t->is_bounded ? t->sum_offset() + sizeof(float) : made.weights.get_size();
  t->packed_layout = layout_hash(made.weights) ^ uint64_t { t->is_bounded } << 63 ^ uint64_t { s.is_transposed } << 62;
  t->pack = pack_weights;
  t->workspace_bytes = made.scratchpad;
  return t;
}

}  // namespace

bool has_conv_last() { return current_isa() != Isa::kBase; }

std::shared_ptr<const Tiling> try_conv_last(const TilingContext& ctx, const std::vector<ConvEnd>& ends) {
  const ConvShape s = make_conv_last_shape(ctx);
  if (wants_lines(ctx, s, ends)) return waste_lines(s, ends) ? nullptr : tile_lines(ctx, s, ends);
  if (!s.is_transposed && !ends.empty() && wants_float_taps(ctx, s)) return nullptr;
  if (!ctx.options().use_onednn || !ctx.is_constant(1) || s.batch == 0 || s.input_size() == 0) return nullptr;
  const int count = threads_for(ctx, s.operations());
  const OpenMpThreads threads(count);
  try {
    return create(s, ends, count);
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

#else

bool has_conv_last() { return false; }

std::shared_ptr<const Tiling> try_conv_last(const TilingContext&, const std::vector<ConvEnd>&) { return nullptr; }

#endif

}  // namespace asc::cpu
