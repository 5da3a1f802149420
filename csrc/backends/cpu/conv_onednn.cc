// Convolution by oneDNN. Activations are plain (batch, channels, spatial); the primitive may want another layout, then
// the launch reorders into and out of workspace. Constant weights are reordered once, by packing.
#include "backends/cpu/conv_onednn.h"

#include "backends/cpu/isa.h"

namespace asc::cpu {

#if ASC_HAVE_ONEDNN

namespace {

using dnnl::memory;

struct OneDnnConv : Tiling {
  bool has_bias = false;
  size_t src_offset = 0, weights_offset = 0, dst_offset = 0, scratchpad_offset = 0;  // in the workspace
  memory::desc plain_weights, packed_weights;
  // Reorders are null where the plain layout is used as it is.
  std::unique_ptr<OneDnnPrimitive> src_reorder, weights_reorder, dst_reorder, convolution;

  size_t bytes() const override {
    size_t n = sizeof(OneDnnConv);
    for (const auto* p : {&src_reorder, &weights_reorder, &dst_reorder, &convolution}) n += *p ? (*p)->bytes() : 0;
    return n;
  }
};

Status launch_onednn(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const OneDnnConv*>(task.tiling);
  auto* workspace = static_cast<char*>(task.workspace(slots));
  void* const x = slots[task.operands[0]];
  void* const y = task.output<void>(slots, 0);
  void* weights = t.packed_bytes ? const_cast<void*>(task.packed(slots)) : slots[task.operands[1]];
  void* src = t.src_reorder ? workspace + t.src_offset : x;
  void* dst = t.dst_reorder ? workspace + t.dst_offset : y;
  Status status = Status::kOk;
  if (t.weights_reorder) {
    void* const data[] = {weights, workspace + t.weights_offset};
    status = t.weights_reorder->execute(data, worker);
    weights = workspace + t.weights_offset;
  }
  if (t.src_reorder && status == Status::kOk) {
    void* const data[] = {x, src};
    status = t.src_reorder->execute(data, worker);
  }
  if (status == Status::kOk) {
    void* const data[] = {src, weights, dst, workspace + t.scratchpad_offset,
                          t.has_bias ? slots[task.operands[2]] : nullptr};
    status = t.convolution->execute(data, worker);
  }
  if (t.dst_reorder && status == Status::kOk) {
    void* const data[] = {dst, y};
    status = t.dst_reorder->execute(data, worker);
  }
  return status;
}

void pack_weights(const Tiling& tiling, const void* const* inputs, void* packed) {
  const auto& t = static_cast<const OneDnnConv&>(tiling);
  reorder_now(t.plain_weights, inputs[1], t.packed_weights, packed);
}

memory::desc plain(const memory::dims& dims) { return plain_desc(dims, memory::data_type::f32); }

// Of weights, and of what the primitive reads. Sums, bias and results are float32.
memory::data_type operand_type(const TilingContext& ctx) {
  return ctx.dtype(1) == DType::kBFloat16 ? memory::data_type::bf16 : memory::data_type::f32;
}

// Channels in blocks of a vector are the cheapest to reorder to. That tells where the work is bound by memory
// (depthwise), and where weights are reordered at every launch; the library's own choice weighs the product only.
memory::format_tag activation_layout(const TilingContext& ctx, const ConvShape& s) {
  using tag = memory::format_tag;
  const int64_t block = current_isa() == Isa::kV4 ? 16 : 8;
  const bool fills_blocks = s.groups == 1 && s.channels % block == 0 && s.out_channels % block == 0;
  const bool wants_blocks = fills_blocks ? !ctx.is_constant(1) : s.is_depthwise() && block == 16;
  if (!wants_blocks || current_isa() == Isa::kBase) return tag::any;
  if (block == 8) return s.spatial == 1 ? tag::nCw8c : s.spatial == 2 ? tag::nChw8c : tag::nCdhw8c;
  return s.spatial == 1 ? tag::nCw16c : s.spatial == 2 ? tag::nChw16c : tag::nCdhw16c;
}

dnnl::convolution_forward::primitive_desc describe(const ConvShape& s, const memory::dims& x, const memory::dims& w,
                                                   const memory::dims& y, memory::data_type operands,
                                                   memory::format_tag layout) {
  constexpr auto kFloat = memory::data_type::f32;
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const memory::desc bias = s.has_bias ? plain({s.out_channels}) : memory::desc();
  return {onednn_engine(),
          dnnl::prop_kind::forward_inference,
          dnnl::algorithm::convolution_direct,
          memory::desc(x, operands, layout),
          memory::desc(w, operands, memory::format_tag::any),
          bias,
          memory::desc(y, kFloat, layout),
          spatial_dims(s, s.stride),
          spatial_dims(s, s.dilation, -1),
          spatial_dims(s, s.pad_begin),
          spatial_dims(s, s.pad_end),
          attr};
}

void set_reorders(const TilingContext& ctx, const memory::desc& x, const memory::desc& y,
                  const dnnl::convolution_forward::primitive_desc& pd, OneDnnConv* t) {
  if (pd.src_desc() != x) {
    t->src_reorder = create_reorder(x, pd.src_desc());
    t->src_offset = take(&t->workspace_bytes, pd.src_desc().get_size());
  }
  if (pd.dst_desc() != y) {
    t->dst_reorder = create_reorder(pd.dst_desc(), y);
    t->dst_offset = take(&t->workspace_bytes, pd.dst_desc().get_size());
  }
  if (t->packed_weights == t->plain_weights) return;
  if (ctx.is_constant(1)) {
    t->packed_bytes = t->packed_weights.get_size();
    t->packed_layout = layout_hash(t->packed_weights);
    t->pack = pack_weights;
  } else {
    t->weights_reorder = create_reorder(t->plain_weights, t->packed_weights);
    t->weights_offset = take(&t->workspace_bytes, t->packed_weights.get_size());
  }
}

std::shared_ptr<const Tiling> create(const TilingContext& ctx, const ConvShape& s, memory::format_tag layout) {
  const memory::dims x = with_spatial({s.batch, s.channels}, s, s.input);
  const memory::dims y = with_spatial({s.batch, s.out_channels}, s, s.output);
  const memory::dims w = weight_dims(s);
  const auto pd = describe(s, x, w, y, operand_type(ctx), layout);
  if (is_reference(pd)) return nullptr;
  auto t = std::make_shared<OneDnnConv>();
  t->launch = launch_onednn;
  t->implementation = operand_type(ctx) == memory::data_type::bf16 ? "onednn:bfloat16" : "onednn";
  t->has_bias = s.has_bias;
  t->plain_weights = plain_desc(w, operand_type(ctx));
  t->packed_weights = pd.weights_desc();
  set_reorders(ctx, plain(x), plain(y), pd, t.get());
  t->scratchpad_offset = take(&t->workspace_bytes, pd.scratchpad_desc().get_size());
  std::vector<OneDnnPrimitive::Argument> arguments = {{DNNL_ARG_SRC, pd.src_desc()},
                                                      {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                                                      {DNNL_ARG_DST, pd.dst_desc()},
                                                      {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}};
  if (s.has_bias) arguments.push_back({DNNL_ARG_BIAS, pd.bias_desc()});
  t->convolution = std::make_unique<OneDnnPrimitive>(dnnl::convolution_forward(pd), std::move(arguments));
  return t;
}

}  // namespace

std::shared_ptr<const Tiling> try_onednn_conv(const TilingContext& ctx, const ConvShape& s) {
  const OpenMpThreads threads(threads_for(ctx, s.operations()));
  try {
    const memory::format_tag layout = activation_layout(ctx, s);
    auto t = create(ctx, s, layout);
    if (!t && layout != memory::format_tag::any) t = create(ctx, s, memory::format_tag::any);
    return t;
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

#else

std::shared_ptr<const Tiling> try_onednn_conv(const TilingContext&, const ConvShape&) { return nullptr; }

#endif

}  // namespace asc::cpu
