// LayerNormalization and RMSNormalization: rows of everything from the axis on.
#include <cmath>

#include "backends/cpu/real_io.h"
#include "backends/cpu/reduce.h"

namespace asc::cpu {
namespace {

struct NormTiling : TilingOf<NormTiling> {
  const VecTable* vec = &vec_table();
  int64_t rows = 1, n = 1;
  float epsilon = 1e-5f;
  bool is_rms = false;
  bool has_scale = false, has_bias = false;
};

void norm_rows(const NormTiling& t, const float* x, const float* scale, const float* bias, float* y, int64_t rows) {
  const auto count = static_cast<size_t>(rows), n = static_cast<size_t>(t.n);
  if (t.is_rms)
    t.vec->rms_norm_rows(x, scale, y, count, n, t.epsilon);
  else
    t.vec->layer_norm_rows(x, scale, bias, y, count, n, t.epsilon);
}

void norm_row(const NormTiling& t, const double* x, const double* scale, const double* bias, double* y) {
  double mean = 0, variance = 0;
  if (!t.is_rms) {
    for (int64_t i = 0; i < t.n; ++i) mean += x[i];
    mean /= static_cast<double>(t.n);
  }
  for (int64_t i = 0; i < t.n; ++i) variance += (x[i] - mean) * (x[i] - mean);
  const double factor = 1.0 / std::sqrt(variance / static_cast<double>(t.n) + static_cast<double>(t.epsilon));
  for (int64_t i = 0; i < t.n; ++i) y[i] = (x[i] - mean) * factor * (scale ? scale[i] : 1.0) + (bias ? bias[i] : 0.0);
}

void norm_rows(const NormTiling& t, const double* x, const double* scale, const double* bias, double* y, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r, x += t.n, y += t.n) norm_row(t, x, scale, bias, y);
}

template <typename Io>
Status launch_norm(const Task& task, void* const* slots, Worker& worker) {
  using Element = typename Io::Element;
  using Value = typename Io::Value;
  const auto& t = *static_cast<const NormTiling*>(task.tiling);
  // Converted types need three rows: the row itself, scale, bias.
  const int64_t spare = Io::kConverts ? t.n : 0;
  auto* buffer = Io::kConverts ? static_cast<Value*>(worker.scratch(3 * spare * sizeof(Value))) : nullptr;
  const auto* x = task.input<Element>(slots, 0);
  auto* y = task.output<Element>(slots, 0);
  const Value* scale = nullptr;
  const Value* bias = nullptr;
  if (t.has_scale) scale = Io::load(*t.vec, task.input<Element>(slots, 1), buffer + spare, t.n);
  if (t.has_bias) bias = Io::load(*t.vec, task.input<Element>(slots, 2), buffer + 2 * spare, t.n);
  if constexpr (!Io::kConverts) {
    norm_rows(t, x, scale, bias, y, t.rows);
    return Status::kOk;
  }
  for (int64_t r = 0; r < t.rows; ++r, x += t.n, y += t.n) {
    Value* result = Io::target(y, buffer);
    norm_rows(t, Io::load(*t.vec, x, buffer, t.n), scale, bias, result, 1);
    Io::store(*t.vec, result, y, t.n);
  }
  return Status::kOk;
}

LaunchFn find_norm(DType type) {
  switch (type) {
    case DType::kFloat32:
      return launch_norm<Float32Io>;
    case DType::kFloat16:
      return launch_norm<Float16Io>;
    case DType::kBFloat16:
      return launch_norm<BFloat16Io>;
    default:
      return launch_norm<PlainIo<double>>;
  }
}

// Whether the optional scale or bias is there; it must cover the row element by element.
bool check_parameter(const TilingContext& ctx, int input, int64_t n) {
  if (!ctx.has_input(input)) return false;
  if (ctx.dtype(input) != ctx.dtype(0))
    ctx.unsupported(std::string("scale or bias of another type than the input: ") + name_of(ctx.dtype(input)) +
                    "; add a Cast");
  if (count_of(ctx.input(input)) != n)
    ctx.unsupported("scale or bias " + ctx.input(input).text() + " is not of the size of the normalised axes, " +
                    std::to_string(n) + "; expand it");
  return true;
}

template <bool kIsRms>
std::shared_ptr<const Tiling> tile_norm(const TilingContext& ctx) {
  const Shape& x = ctx.input(0);
  const int axis = checked_axis(ctx, ctx.attr("axis", -1), x.rank());
  if (count_of(x) == 0) return create_empty_tiling();
  const DType type = ctx.dtype(0);
  auto t = create_tiling<NormTiling>(find_norm(type), type == DType::kFloat64 ? "scalar" : "vector");
  t->rows = x.span_of(0, axis);
  t->n = x.span_of(axis, x.rank());
  t->epsilon = static_cast<float>(ctx.attributes().get_float("epsilon", 1e-5));
  t->is_rms = kIsRms;
  t->has_scale = check_parameter(ctx, 1, t->n);
  t->has_bias = !kIsRms && check_parameter(ctx, 2, t->n);
  return t;
}

}  // namespace

void register_layer_norm(KernelRegistry& registry) {
  registry.add("LayerNormalization", kFloats, tile_norm<false>);
  registry.add("RMSNormalization", kFloats, tile_norm<true>);
}

}  // namespace asc::cpu
