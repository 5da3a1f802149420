// Shape, Size, Range, ConstantOfShape, EyeLike: outputs made from the tiling alone, without reading any data.
#include <algorithm>
#include <cstring>

#include "backends/cpu/movement.h"
#include "backends/cpu/tiling_base.h"

namespace asc::cpu {
namespace {

struct ShapeTiling : TilingOf<ShapeTiling> {
  int count = 0;
  int64_t values[kMaxRank];
};

Status launch_shape(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const ShapeTiling*>(task.tiling);
  int64_t* out = task.output<int64_t>(slots, 0);
  for (int i = 0; i < t.count; ++i) out[i] = t.values[i];
  return Status::kOk;
}

std::shared_ptr<const Tiling> tile_shape(const TilingContext& ctx) {
  const Shape& x = ctx.input(0);
  const int64_t rank = x.rank();
  const auto position = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + rank : i, 0, rank); };
  const int64_t end = position(ctx.attr("end", rank));
  auto t = create_tiling<ShapeTiling>(launch_shape, "dims");
  for (int64_t i = position(ctx.attr("start", 0)); i < end; ++i) t->values[t->count++] = x[static_cast<int>(i)];
  return t;
}

std::shared_ptr<const Tiling> tile_size(const TilingContext& ctx) {
  auto t = create_tiling<ShapeTiling>(launch_shape, "dims");
  t->count = 1;
  t->values[0] = count_of(ctx.input(0));
  return t;
}

struct RangeTiling : TilingOf<RangeTiling> {
  int64_t count = 0;
  alignas(8) unsigned char start[8], delta[8];  // of the output's type
};

// start + i * delta in one rounding step per operation; integers wrap instead of overflowing.
template <typename T, typename Wide>
Status launch_range(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const RangeTiling*>(task.tiling);
  T* out = task.output<T>(slots, 0);
  T start, delta;
  std::memcpy(&start, t.start, sizeof(T));
  std::memcpy(&delta, t.delta, sizeof(T));
  for (int64_t i = 0; i < t.count; ++i)
    out[i] = static_cast<T>(static_cast<Wide>(start) + static_cast<Wide>(i) * static_cast<Wide>(delta));
  return Status::kOk;
}

LaunchFn find_range(const TilingContext& ctx) {
  switch (ctx.dtype(0)) {
    case DType::kFloat32:
      return launch_range<float, float>;
    case DType::kFloat64:
      return launch_range<double, double>;
    case DType::kInt16:
      return launch_range<int16_t, uint64_t>;
    case DType::kInt32:
      return launch_range<int32_t, uint64_t>;
    case DType::kInt64:
      return launch_range<int64_t, uint64_t>;
    default:
      ctx.unsupported(std::string("element type ") + name_of(ctx.dtype(0)) + "; cast the inputs");
  }
}

std::shared_ptr<const Tiling> tile_range(const TilingContext& ctx) {
  const HostTensor& start = ctx.host(0);
  const HostTensor& delta = ctx.host(2);
  const size_t size = size_of(ctx.dtype(0));
  if (count_of(start.shape) != 1 || count_of(delta.shape) != 1 || delta.dtype != start.dtype)
    fail_tiling(ctx, "start and delta must be scalars of one type; check the model");
  auto t = create_tiling<RangeTiling>(find_range(ctx), "scalar");
  t->count = count_of(ctx.output(0));
  std::memcpy(t->start, start.data(), size);
  std::memcpy(t->delta, delta.data(), size);
  return t;
}

struct FillTiling : TilingOf<FillTiling> {
  int64_t count = 0;
  size_t size = 0;     // of an element
  uint64_t value = 0;  // its bytes, lowest first
};

template <typename T>
Status launch_fill(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const FillTiling*>(task.tiling);
  T value;
  std::memcpy(&value, &t.value, sizeof(T));
  std::fill_n(task.output<T>(slots, 0), t.count, value);
  return Status::kOk;
}

// A value of one byte again and again, such as zero.
Status launch_fill_bytes(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const FillTiling*>(task.tiling);
  std::memset(task.output<char>(slots, 0), static_cast<int>(t.value & 0xFF), static_cast<size_t>(t.count) * t.size);
  return Status::kOk;
}

LaunchFn find_fill(size_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return launch_fill<uint8_t>;
    case 2:
      return launch_fill<uint16_t>;
    case 4:
      return launch_fill<uint32_t>;
    default:
      return launch_fill<uint64_t>;
  }
}

std::shared_ptr<const Tiling> tile_constant_of_shape(const TilingContext& ctx) {
  const size_t size = size_of(ctx.output_dtype(0));
  auto t = create_tiling<FillTiling>(find_fill(size), "fill");
  t->count = count_of(ctx.output(0));
  if (const HostTensor* value = ctx.attributes().get_tensor("value")) {
    if (count_of(value->shape) != 1 || size_of(value->dtype) != size)
      fail_tiling(ctx, "value must hold one element of the output's type; correct the attribute");
    std::memcpy(&t->value, value->data(), size);
  }
  t->size = size;
  const uint64_t repeated = (t->value & 0xFF) * 0x0101010101010101u;
  if (std::memcmp(&repeated, &t->value, size) == 0) t->launch = launch_fill_bytes;
  return t;
}

struct EyeTiling : TilingOf<EyeTiling> {
  int64_t rows = 0, columns = 0, diagonal = 0;
  size_t element_bytes = 0;
  uint64_t one = 0;  // the element's bytes
};

Status launch_eye(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const EyeTiling*>(task.tiling);
  char* out = task.output<char>(slots, 0);
  std::memset(out, 0, static_cast<size_t>(t.rows * t.columns) * t.element_bytes);
  for (int64_t r = 0; r < t.rows; ++r) {
    const int64_t c = r + t.diagonal;
    if (c >= 0 && c < t.columns) std::memcpy(out + (r * t.columns + c) * t.element_bytes, &t.one, t.element_bytes);
  }
  return Status::kOk;
}

uint64_t bits_of_one(DType type) {
  switch (type) {
    case DType::kFloat32:
      return 0x3F800000u;
    case DType::kFloat64:
      return 0x3FF0000000000000u;
    case DType::kFloat16:
      return 0x3C00u;
    case DType::kBFloat16:
      return 0x3F80u;
    default:
      return 1;
  }
}

std::shared_ptr<const Tiling> tile_eye_like(const TilingContext& ctx) {
  const Shape& y = ctx.output(0);
  if (y.rank() != 2) fail_tiling(ctx, "needs rank 2, got " + y.text() + "; check the model");
  if (count_of(y) == 0) return create_empty_tiling();
  auto t = create_tiling<EyeTiling>(launch_eye, "fill");
  t->rows = y[0];
  t->columns = y[1];
  t->diagonal = std::clamp(ctx.attr("k", 0), -y[0], y[1]);  // beyond, no element is set
  t->element_bytes = size_of(ctx.output_dtype(0));
  t->one = bits_of_one(ctx.output_dtype(0));
  return t;
}

}  // namespace

void register_generate(KernelRegistry& registry) {
  registry.add("Shape", kAnyType, tile_shape);
  registry.add("Size", kAnyType, tile_size);
  registry.add("Range", kNumbers, tile_range);
  registry.add("ConstantOfShape", kAnyType, tile_constant_of_shape);
  registry.add("EyeLike", kAnyType, tile_eye_like);
}

}  // namespace asc::cpu
