// Convolution of bytes by oneDNN, on channels-last tensors as they lie. Weights are packed once.
#include <limits>

#include "backends/cpu/conv_bytes.h"
#include "backends/cpu/conv_onednn.h"
#include "backends/cpu/isa.h"
#include "base/hash.h"

namespace asc::cpu {

#if ASC_HAVE_ONEDNN

namespace {

using dnnl::memory;

struct OneDnnByteConv : Tiling {
  ByteConv conv;
  memory::desc plain_weights, packed_weights;
  std::unique_ptr<OneDnnPrimitive> convolution;
  size_t bytes() const override { return sizeof(OneDnnByteConv) + convolution->bytes(); }
};

Status launch_onednn(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const OneDnnByteConv*>(task.tiling);
  const ByteConv& c = t.conv;
  const auto slot = [&](int i) { return i < task.input_count ? slots[task.operands[i]] : nullptr; };
  int32_t x_zero = zero_at(slot(kQuantXZero), c.x_type), y_zero = zero_at(slot(kQuantYZero), c.y_type);
  void* data[9] = {slot(kQuantX), const_cast<void*>(task.packed(slots)), task.output<void>(slots, 0),
                   task.workspace(slots)};
  int count = 4;
  if (c.shape.has_bias) data[count++] = slot(kQuantBias);
  if (c.scales) data[count++] = slot(kQuantScale);
  if (c.rounds()) data[count++] = slot(kQuantYScale);
  if (c.has_x_zero) data[count++] = &x_zero;
  if (c.has_y_zero) data[count++] = &y_zero;
  return t.convolution->execute(data, worker);
}

void pack_weights(const Tiling& tiling, const void* const* inputs, void* packed) {
  const auto& t = static_cast<const OneDnnByteConv&>(tiling);
  reorder_now(t.plain_weights, inputs[kQuantW], t.packed_weights, packed);
}

memory::data_type type_of(DType t) {
  switch (t) {
    case DType::kInt8:
      return memory::data_type::s8;
    case DType::kUInt8:
      return memory::data_type::u8;
    case DType::kInt32:
      return memory::data_type::s32;
    default:
      return memory::data_type::f32;
  }
}

memory::desc channels_last(const memory::dims& dims, DType type) {
  using tag = memory::format_tag;
  return memory::desc(dims, type_of(type), dims.size() == 3 ? tag::nwc : dims.size() == 4 ? tag::nhwc : tag::ndhwc);
}

dnnl::primitive_attr make_attributes(const ByteConv& c) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (c.scales) attr.set_scales_mask(DNNL_ARG_WEIGHTS, c.scales == 1 ? 0 : c.shape.groups == 1 ? 1 : 3);
  if (c.rounds()) attr.set_scales_mask(DNNL_ARG_DST, 0);
  if (c.has_x_zero) attr.set_zero_points_mask(DNNL_ARG_SRC, 0);
  if (c.has_y_zero) attr.set_zero_points_mask(DNNL_ARG_DST, 0);
  if (c.has_bounds()) {
    dnnl::post_ops bounds;
    if (c.low == 0 && c.high == std::numeric_limits<float>::infinity())
      bounds.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
    else
      bounds.append_eltwise(dnnl::algorithm::eltwise_clip_v2, c.low, c.high);
    attr.set_post_ops(bounds);
  }
  return attr;
}

std::vector<OneDnnPrimitive::Argument> make_arguments(const ByteConv& c,
                                                      const dnnl::convolution_forward::primitive_desc& pd) {
  const auto numbers = [](int64_t n, memory::data_type type) { return plain_desc({n}, type); };
  std::vector<OneDnnPrimitive::Argument> a = {{DNNL_ARG_SRC, pd.src_desc()},
                                              {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                                              {DNNL_ARG_DST, pd.dst_desc()},
                                              {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}};
  if (c.shape.has_bias) a.push_back({DNNL_ARG_BIAS, pd.bias_desc()});
  if (c.scales) a.push_back({DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, numbers(c.scales, memory::data_type::f32)});
  if (c.rounds()) a.push_back({DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST, numbers(1, memory::data_type::f32)});
  if (c.has_x_zero) a.push_back({DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, numbers(1, memory::data_type::s32)});
  if (c.has_y_zero) a.push_back({DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_DST, numbers(1, memory::data_type::s32)});
  return a;
}

std::shared_ptr<const Tiling> create(const ByteConv& c) {
  const ConvShape& s = c.shape;
  const memory::dims w = weight_dims(s);
  const dnnl::convolution_forward::primitive_desc pd(
      onednn_engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
      channels_last(with_spatial({s.batch, s.channels}, s, s.input), c.x_type),
      memory::desc(w, memory::data_type::s8, memory::format_tag::any),
      s.has_bias ? plain_desc({s.out_channels}, memory::data_type::f32) : memory::desc(),
      channels_last(with_spatial({s.batch, s.out_channels}, s, s.output), c.y_type), spatial_dims(s, s.stride),
      spatial_dims(s, s.dilation, -1), spatial_dims(s, s.pad_begin), spatial_dims(s, s.pad_end), make_attributes(c));
  if (is_reference(pd)) return nullptr;
  auto t = std::make_shared<OneDnnByteConv>();
  t->launch = launch_onednn;
  t->implementation = "onednn:bytes";
  t->conv = c;
  t->plain_weights = plain_desc(w, memory::data_type::s8);
  t->packed_weights = pd.weights_desc();
  t->packed_bytes = t->packed_weights.get_size();
  // What is stored behind the weights depends on these, too.
  t->packed_layout =
      mix64(layout_hash(t->packed_weights), (c.x_type == DType::kInt8 ? 2 : 0) + (c.has_x_zero ? 1 : 0)) | 1;
  t->pack = pack_weights;
  t->workspace_bytes = pd.scratchpad_desc().get_size();
  t->convolution = std::make_unique<OneDnnPrimitive>(dnnl::convolution_forward(pd), make_arguments(c, pd));
  return t;
}

// Older instructions saturate the sum of two products in 16 bits.
bool is_exact() {
#if defined(__x86_64__)
  return current_isa() == Isa::kV4 ? __builtin_cpu_supports("avx512vnni") : __builtin_cpu_supports("avxvnni");
#else
  return false;
#endif
}

}  // namespace

std::shared_ptr<const Tiling> try_onednn_conv(const TilingContext& ctx, const ByteConv& c) {
  if (!is_exact() || !ctx.is_constant(kQuantW)) return nullptr;
  const OpenMpThreads threads(threads_for(ctx, c.operations()));
  try {
    return create(c);
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

#else

std::shared_ptr<const Tiling> try_onednn_conv(const TilingContext&, const ByteConv&) { return nullptr; }

#endif

}  // namespace asc::cpu
