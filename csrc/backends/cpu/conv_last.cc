#include "backends/cpu/conv_last.h"

#include "backends/cpu/nn.h"
#include "ops/channels_last.h"

namespace asc::cpu {

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

namespace {

// --- channels first and back: where oneDNN refuses ----------------------------------------------------------------

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

std::shared_ptr<const Tiling> tile_conv_last(const TilingContext& ctx) {
  if (count_of(ctx.output(0)) == 0) return create_empty_tiling();
  ConvShape s = make_conv_last_shape(ctx);
  if (!s.is_transposed && !wants_lines(ctx, s, {}) && wants_float_taps(ctx, s)) return tile_float_taps(s);
  if (auto t = try_conv_last(ctx, {})) return t;
  s.is_last = false;  // as the convolution behind the turning sees it
  return tile_turned(ctx, s);
}

void register_conv_last(KernelRegistry& registry) {
  registry.add(conv_last_op().name, DType::kFloat32, tile_conv_last);
  registry.add(conv_transpose_last_op().name, DType::kFloat32, tile_conv_last);
}

}  // namespace asc::cpu
