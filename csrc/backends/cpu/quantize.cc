// QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear. Integers saturate, halves round to even.
#include "backends/cpu/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/kernels.h"
#include "backends/cpu/vec_table.h"
#include "ops/quantize.h"

namespace asc {
namespace cpu {
namespace {

struct ScaledTiling : TilingOf<ScaledTiling> {
  ScaleBlocks blocks;
};

// Calls row(first element, count, scale index, scales that advance with the elements) for runs of elements.
template <typename Row>
void for_each_run(const ScaleBlocks& b, Row row) {
  int64_t first = 0;
  for (int64_t o = 0; o < b.outer; ++o)
    for (int64_t a = 0; a < b.axis; ++a, first += b.inner)
      row(first, b.inner, b.is_blocked ? (o * b.blocks() + a / b.block) * b.inner : a);
}

constexpr int64_t kRun = 512;  // elements of the buffers on the stack

// y = x / scale, rounded and shifted, inside the range of Q; NaN becomes the lowest value.
template <typename Q>
void quantize_run(const float* x, const float* scale, float zero, Q* y, int64_t n) {
  constexpr float kLow = std::numeric_limits<Q>::lowest(), kHigh = std::numeric_limits<Q>::max();
  const VecTable& v = vec_table();
  if constexpr (sizeof(Q) == 1) {
    v.quantize_bytes(x, reinterpret_cast<uint8_t*>(y), static_cast<size_t>(n), *scale, zero, kLow);
  } else {
    float buffer[kRun];
    for (int64_t i = 0; i < n; i += kRun) {
      const int64_t count = std::min(kRun, n - i);
      v.div.vs(x + i, scale, buffer, static_cast<size_t>(count));
      v.round(buffer, buffer, static_cast<size_t>(count));
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) {
        const float z = buffer[j] + zero > kLow ? buffer[j] + zero : kLow;
        y[i + j] = static_cast<Q>(static_cast<int32_t>(z < kHigh ? z : kHigh));
      }
    }
  }
}

template <typename Q>
Q quantize_one(float x, float scale, float zero) {
  Q y;
  quantize_run(&x, &scale, zero, &y, 1);
  return y;
}

template <typename X, typename Q>
Status launch_quantize(const Task& task, void* const* slots, Worker&) {
  const ScaleBlocks& b = static_cast<const ScaledTiling*>(task.tiling)->blocks;
  const X* x = task.input<X>(slots, 0);
  const float* scales = task.input<float>(slots, 1);
  const Q* zeros = task.has_input(slots, 2) ? task.input<Q>(slots, 2) : nullptr;
  Q* y = task.output<Q>(slots, 0);
  const auto zero_of = [&](int64_t s) { return zeros ? static_cast<float>(zeros[s]) : 0.0f; };
  for_each_run(b, [&](int64_t first, int64_t n, int64_t s) {
    if (b.is_blocked || b.inner == 1) {
      const int64_t step = b.is_blocked ? 1 : 0;
      for (int64_t i = 0; i < n; ++i)
        y[first + i] = quantize_one<Q>(static_cast<float>(x[first + i]), scales[s + i * step], zero_of(s + i * step));
    } else if constexpr (std::is_same_v<X, float>) {
      quantize_run(x + first, scales + s, zero_of(s), y + first, n);
    } else {
      float wide[kRun];
      for (int64_t i = 0; i < n; i += kRun) {
        const int64_t count = std::min(kRun, n - i);
        for (int64_t j = 0; j < count; ++j) wide[j] = static_cast<float>(x[first + i + j]);
        quantize_run(wide, scales + s, zero_of(s), y + first + i, count);
      }
    }
  });
  return Status::kOk;
}

template <typename Q>
Status launch_dequantize(const Task& task, void* const* slots, Worker&) {
  const ScaleBlocks& b = static_cast<const ScaledTiling*>(task.tiling)->blocks;
  const Q* x = task.input<Q>(slots, 0);
  const float* scales = task.input<float>(slots, 1);
  const Q* zeros = task.has_input(slots, 2) ? task.input<Q>(slots, 2) : nullptr;
  float* y = task.output<float>(slots, 0);
  using Wide = std::conditional_t<sizeof(Q) == 4, int64_t, int32_t>;
  for_each_run(b, [&](int64_t first, int64_t n, int64_t s) {
    if (b.is_blocked) {
      for (int64_t i = 0; i < n; ++i)
        y[first + i] = static_cast<float>(Wide{x[first + i]} - (zeros ? Wide{zeros[s + i]} : 0)) * scales[s + i];
      return;
    }
    const float scale = scales[s];
    const Wide zero = zeros ? Wide{zeros[s]} : 0;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[first + i] = static_cast<float>(Wide{x[first + i]} - zero) * scale;
  });
  return Status::kOk;
}

template <typename X>
LaunchFn find_quantize(DType to) {
  switch (to) {
    case DType::kInt8:
      return launch_quantize<X, int8_t>;
    case DType::kUInt8:
      return launch_quantize<X, uint8_t>;
    case DType::kInt16:
      return launch_quantize<X, int16_t>;
    default:
      return launch_quantize<X, uint16_t>;
  }
}

LaunchFn find_dequantize(DType from) {
  switch (from) {
    case DType::kInt8:
      return launch_dequantize<int8_t>;
    case DType::kUInt8:
      return launch_dequantize<uint8_t>;
    case DType::kInt16:
      return launch_dequantize<int16_t>;
    case DType::kUInt16:
      return launch_dequantize<uint16_t>;
    default:
      return launch_dequantize<int32_t>;
  }
}

std::shared_ptr<const Tiling> tile_scaled(const TilingContext& ctx, LaunchFn launch) {
  if (ctx.dtype(1) != DType::kFloat32)
    ctx.unsupported(std::string("the scale is ") + name_of(ctx.dtype(1)) + "; insert a Cast to float32");
  if (count_of(ctx.output(0)) == 0) return create_empty_tiling();
  auto t = create_tiling<ScaledTiling>(launch, "runs");
  t->blocks = read_scale_blocks(ctx);
  return t;
}

std::shared_ptr<const Tiling> tile_quantize(const TilingContext& ctx) {
  const DType to = ctx.output_dtype(0);
  return tile_scaled(ctx, ctx.dtype(0) == DType::kInt32 ? find_quantize<int32_t>(to) : find_quantize<float>(to));
}

std::shared_ptr<const Tiling> tile_dequantize(const TilingContext& ctx) {
  return tile_scaled(ctx, find_dequantize(ctx.dtype(0)));
}

struct DynamicTiling : TilingOf<DynamicTiling> {
  int64_t count = 0;
};

// The range holds zero; that of NaN is empty.
ByteScale find_byte_scale(const float* x, int64_t n) {
  float low, high;
  vec_table().range_with_zero(x, static_cast<size_t>(n), &low, &high);
  low = std::min(0.0f, low), high = std::max(0.0f, high);  // no NaN
  const float scale = high == low ? 1.0f : (high - low) / 255.0f;
  const float zero = std::nearbyint(-low / scale);  // NaN where the range is infinite
  return {scale, static_cast<uint8_t>(zero > 0.0f ? std::min(zero, 255.0f) : 0.0f)};
}

Status launch_dynamic_quantize(const Task& task, void* const* slots, Worker&) {
  const int64_t n = static_cast<const DynamicTiling*>(task.tiling)->count;
  const float* x = task.input<float>(slots, 0);
  const auto [scale, zero] = quantize_bytes(x, n, task.output<uint8_t>(slots, 0));
  *task.output<float>(slots, 1) = scale;
  *task.output<uint8_t>(slots, 2) = zero;
  return Status::kOk;
}

std::shared_ptr<const Tiling> tile_dynamic_quantize(const TilingContext& ctx) {
  auto t = create_tiling<DynamicTiling>(launch_dynamic_quantize, "two passes");
  t->count = count_of(ctx.input(0));
  return t;
}

}  // namespace

int32_t zero_at(const void* zero, DType type) {
  if (!zero) return 0;
  return type == DType::kInt8 ? int32_t{*static_cast<const int8_t*>(zero)} : *static_cast<const uint8_t*>(zero);
}

ByteScale quantize_bytes(const float* x, int64_t n, uint8_t* y) {
  const ByteScale q = find_byte_scale(x, n);
  quantize_run(x, &q.scale, static_cast<float>(q.zero), y, n);
  return q;
}

}  // namespace cpu

void register_quantize_kernels(KernelRegistry& registry) {
  registry.add("QuantizeLinear", DTypeSet(DType::kFloat32) | DType::kInt32, cpu::tile_quantize);
  registry.add("DequantizeLinear", kIntegers, cpu::tile_dequantize);
  registry.add("DynamicQuantizeLinear", DType::kFloat32, cpu::tile_dynamic_quantize);
  cpu::register_matmul_integer(registry);
  cpu::register_byte_pool(registry);
  cpu::register_quantized_conv(registry);
  cpu::register_quantized_matmul(registry);
  cpu::register_quantized_lstm(registry);
}

}  // namespace asc
