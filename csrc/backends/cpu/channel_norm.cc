// BatchNormalization (inference) and InstanceNormalization: x is [batch, channels, inner].
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "backends/cpu/real_io.h"
#include "backends/cpu/reduce.h"

namespace asc::cpu {
namespace {

struct ChannelTiling : TilingOf<ChannelTiling> {
  const VecTable* vec = &vec_table();
  int64_t batch = 1, channels = 1, inner = 1;
  float epsilon = 1e-5f;
  DType parameter_types[5] = {};  // by input; [0] is unused
};

// `n` parameters of any float type as float or double.
template <typename V>
void load_reals(const VecTable& v, DType type, const void* from, V* to, int64_t n) {
  float chunk[kRealChunk];
  for (int64_t i = 0; i < n; i += kRealChunk) {
    const int64_t count = std::min(kRealChunk, n - i);
    if (type == DType::kFloat32) {
      std::copy_n(static_cast<const float*>(from) + i, count, to + i);
    } else if (type == DType::kFloat64) {
      std::transform(static_cast<const double*>(from) + i, static_cast<const double*>(from) + i + count, to + i,
                     [](double x) { return static_cast<V>(x); });
    } else {
      const auto* halves = static_cast<const uint16_t*>(from) + i;
      (type == DType::kFloat16 ? v.float16_to_float32 : v.bfloat16_to_float32)(halves, chunk, count);
      std::copy_n(chunk, count, to + i);
    }
  }
}

void scale_shift(const VecTable& v, const float* x, float* y, int64_t n, float factor, float shift) {
  v.scale_shift(x, y, static_cast<size_t>(n), factor, shift);
}

void scale_shift(const VecTable&, const double* x, double* y, int64_t n, double factor, double shift) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * factor + shift;
}

void mul_add(const VecTable& v, const float* x, const float* factor, const float* shift, float* y, int64_t n) {
  v.mul_add(x, factor, shift, y, static_cast<size_t>(n));
}

void mul_add(const VecTable&, const double* x, const double* factor, const double* shift, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * factor[i] + shift[i];
}

// Applies use(values, results, position, count) to a row, chunk by chunk where it must be converted.
template <typename Io, typename Use>
void map_row(const VecTable& v, const typename Io::Element* x, typename Io::Element* y, int64_t n, Use use) {
  typename Io::Value buffer[kRealChunk];
  const int64_t chunk = Io::kConverts ? kRealChunk : n;
  for (int64_t i = 0; i < n; i += chunk) {
    const int64_t count = std::min(chunk, n - i);
    auto* result = Io::target(y + i, buffer);
    use(Io::load(v, x + i, buffer, count), result, i, count);
    Io::store(v, result, y + i, count);
  }
}

// factor = scale / sqrt(variance + epsilon), shift = bias - mean * factor; both of `channels` entries.
template <typename V>
void fold_statistics(const ChannelTiling& t, const Task& task, void* const* slots, V* factor, V* shift, V* buffer) {
  const auto load = [&](int input, V* to) {
    load_reals(*t.vec, t.parameter_types[input], slots[task.operands[input]], to, t.channels);
  };
  load(1, factor);
  load(4, buffer);
  for (int64_t c = 0; c < t.channels; ++c) factor[c] /= std::sqrt(buffer[c] + static_cast<V>(t.epsilon));
  load(2, shift);
  load(3, buffer);
  for (int64_t c = 0; c < t.channels; ++c) shift[c] -= buffer[c] * factor[c];
}

template <typename Io>
Status launch_batch_norm(const Task& task, void* const* slots, Worker& worker) {
  using Value = typename Io::Value;
  const auto& t = *static_cast<const ChannelTiling*>(task.tiling);
  const VecTable& v = *t.vec;
  auto* factor = static_cast<Value*>(worker.scratch(3 * t.channels * sizeof(Value)));
  Value* shift = factor + t.channels;
  fold_statistics(t, task, slots, factor, shift, shift + t.channels);
  const auto* x = task.input<typename Io::Element>(slots, 0);
  auto* y = task.output<typename Io::Element>(slots, 0);
  if (t.inner == 1) {
    for (int64_t b = 0; b < t.batch; ++b, x += t.channels, y += t.channels)
      map_row<Io>(v, x, y, t.channels, [&](const Value* in, Value* out, int64_t c, int64_t n) {
        mul_add(v, in, factor + c, shift + c, out, n);
      });
    return Status::kOk;
  }
  for (int64_t row = 0; row < t.batch * t.channels; ++row, x += t.inner, y += t.inner) {
    const int64_t c = row % t.channels;
    map_row<Io>(v, x, y, t.inner, [&](const Value* in, Value* out, int64_t, int64_t n) {
      scale_shift(v, in, out, n, factor[c], shift[c]);
    });
  }
  return Status::kOk;
}

void normalize(const ChannelTiling& t, const float* x, float* y) {
  t.vec->layer_norm_rows(x, nullptr, nullptr, y, 1, static_cast<size_t>(t.inner), t.epsilon);
}

void normalize(const ChannelTiling& t, const double* x, double* y) {
  const auto n = static_cast<double>(t.inner);
  double mean = 0, variance = 0;
  for (int64_t i = 0; i < t.inner; ++i) mean += x[i];
  mean /= n;
  for (int64_t i = 0; i < t.inner; ++i) variance += (x[i] - mean) * (x[i] - mean);
  const double factor = 1.0 / std::sqrt(variance / n + static_cast<double>(t.epsilon));
  for (int64_t i = 0; i < t.inner; ++i) y[i] = (x[i] - mean) * factor;
}

template <typename Io>
Status launch_instance_norm(const Task& task, void* const* slots, Worker& worker) {
  using Value = typename Io::Value;
  const auto& t = *static_cast<const ChannelTiling*>(task.tiling);
  const int64_t row_length = Io::kConverts ? t.inner : 0;
  auto* scale = static_cast<Value*>(worker.scratch((2 * t.channels + row_length) * sizeof(Value)));
  Value* bias = scale + t.channels;
  Value* buffer = bias + t.channels;
  load_reals(*t.vec, t.parameter_types[1], slots[task.operands[1]], scale, t.channels);
  load_reals(*t.vec, t.parameter_types[2], slots[task.operands[2]], bias, t.channels);
  const auto* x = task.input<typename Io::Element>(slots, 0);
  auto* y = task.output<typename Io::Element>(slots, 0);
  for (int64_t row = 0; row < t.batch * t.channels; ++row, x += t.inner, y += t.inner) {
    Value* result = Io::target(y, buffer);
    normalize(t, Io::load(*t.vec, x, buffer, t.inner), result);
    scale_shift(*t.vec, result, result, t.inner, scale[row % t.channels], bias[row % t.channels]);
    Io::store(*t.vec, result, y, t.inner);
  }
  return Status::kOk;
}

LaunchFn find_batch_norm(DType type) {
  switch (type) {
    case DType::kFloat32:
      return launch_batch_norm<Float32Io>;
    case DType::kFloat16:
      return launch_batch_norm<Float16Io>;
    case DType::kBFloat16:
      return launch_batch_norm<BFloat16Io>;
    default:
      return launch_batch_norm<PlainIo<double>>;
  }
}

LaunchFn find_instance_norm(DType type) {
  switch (type) {
    case DType::kFloat32:
      return launch_instance_norm<Float32Io>;
    case DType::kFloat16:
      return launch_instance_norm<Float16Io>;
    case DType::kBFloat16:
      return launch_instance_norm<BFloat16Io>;
    default:
      return launch_instance_norm<PlainIo<double>>;
  }
}

std::shared_ptr<const Tiling> create_channel(const TilingContext& ctx, LaunchFn launch, int inputs) {
  const Shape& x = ctx.input(0);
  if (x.rank() == 0 || count_of(x) == 0) return create_empty_tiling();
  auto t = create_tiling<ChannelTiling>(launch, ctx.dtype(0) == DType::kFloat64 ? "scalar" : "vector");
  t->batch = x[0];
  t->channels = x.rank() > 1 ? x[1] : 1;
  t->inner = x.rank() > 2 ? x.span_of(2, x.rank()) : 1;
  t->epsilon = static_cast<float>(ctx.attributes().get_float("epsilon", 1e-5));
  for (int i = 1; i < inputs; ++i) {
    t->parameter_types[i] = ctx.dtype(i);
    if (!is_float(ctx.dtype(i)) || count_of(ctx.input(i)) != t->channels)
      fail_tiling(ctx, "input " + std::to_string(i) + " must have " + std::to_string(t->channels) + " floats, got " +
                           ctx.input(i).text() + "; check the model");
  }
  return t;
}

std::shared_ptr<const Tiling> tile_batch_norm(const TilingContext& ctx) {
  if (ctx.attr("training_mode", 0) != 0) ctx.unsupported("training_mode 1; export the model for inference");
  return create_channel(ctx, find_batch_norm(ctx.dtype(0)), 5);
}

std::shared_ptr<const Tiling> tile_instance_norm(const TilingContext& ctx) {
  return create_channel(ctx, find_instance_norm(ctx.dtype(0)), 3);
}

}  // namespace

void register_channel_norm(KernelRegistry& registry) {
  registry.add("BatchNormalization", kFloats, tile_batch_norm);
  registry.add("InstanceNormalization", kFloats, tile_instance_norm);
}

}  // namespace asc::cpu
