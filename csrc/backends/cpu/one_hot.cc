// OneHot: the output is filled with the off value, then one element per index is set.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/movement.h"
#include "backends/cpu/tiling_base.h"
#include "backends/cpu/vec_table.h"

namespace asc::cpu {
namespace {

struct OneHotTiling : TilingOf<OneHotTiling> {
  int64_t outer = 1, depth = 0, inner = 1;  // the output is [outer, depth, inner], the indices [outer, inner]
  int64_t (*read_index)(const void* indices, int64_t i) = nullptr;
};

constexpr int64_t kNoIndex = -(int64_t{1} << 62);  // never inside [-depth, depth)

template <typename T>
int64_t read_integer(const void* indices, int64_t i) {
  return static_cast<int64_t>(static_cast<const T*>(indices)[i]);
}

// Fractions are cut off, as in a cast; what no int64 holds selects nothing.
template <typename T>
int64_t read_real(const void* indices, int64_t i) {
  const T x = static_cast<const T*>(indices)[i];
  return std::abs(x) < T(1e18) ? static_cast<int64_t>(x) : kNoIndex;
}

template <bool kIsBFloat16>
int64_t read_half(const void* indices, int64_t i) {
  float x;
  const VecTable& v = vec_table();
  (kIsBFloat16 ? v.bfloat16_to_float32 : v.float16_to_float32)(static_cast<const uint16_t*>(indices) + i, &x, 1);
  return read_real<float>(&x, 0);
}

template <typename T>
Status launch_one_hot(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const OneHotTiling*>(task.tiling);
  const void* indices = slots[task.operands[0]];
  const T* values = task.input<T>(slots, 2);
  const T off = values[0], on = values[1];
  T* out = task.output<T>(slots, 0);
  std::fill_n(out, t.outer * t.depth * t.inner, off);
  for (int64_t o = 0; o < t.outer; ++o, out += t.depth * t.inner) {
    for (int64_t i = 0; i < t.inner; ++i) {
      int64_t index = t.read_index(indices, o * t.inner + i);
      if (index < 0) index += t.depth;
      if (index >= 0 && index < t.depth) out[index * t.inner + i] = on;
    }
  }
  return Status::kOk;
}

LaunchFn find_one_hot(size_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return launch_one_hot<uint8_t>;
    case 2:
      return launch_one_hot<uint16_t>;
    case 4:
      return launch_one_hot<uint32_t>;
    default:
      return launch_one_hot<uint64_t>;
  }
}

int64_t (*find_reader(DType type))(const void*, int64_t) {
  switch (type) {
    case DType::kFloat32:
      return read_real<float>;
    case DType::kFloat64:
      return read_real<double>;
    case DType::kFloat16:
      return read_half<false>;
    case DType::kBFloat16:
      return read_half<true>;
    case DType::kInt8:
      return read_integer<int8_t>;
    case DType::kInt16:
      return read_integer<int16_t>;
    case DType::kUInt16:
      return read_integer<uint16_t>;
    case DType::kInt32:
      return read_integer<int32_t>;
    case DType::kUInt32:
      return read_integer<uint32_t>;
    case DType::kInt64:
      return read_integer<int64_t>;
    case DType::kUInt64:
      return read_integer<uint64_t>;
    default:
      return read_integer<uint8_t>;
  }
}

std::shared_ptr<const Tiling> tile_one_hot(const TilingContext& ctx) {
  const Shape& y = ctx.output(0);
  if (y.rank() != ctx.input(0).rank() + 1 || count_of(ctx.input(2)) != 2)
    fail_tiling(ctx, "values must hold [off, on], got shape " + ctx.input(2).text() + "; check the model");
  const int axis = checked_axis(ctx, ctx.attr("axis", -1), y.rank());
  if (count_of(y) == 0) return create_empty_tiling();
  auto t = create_tiling<OneHotTiling>(find_one_hot(size_of(ctx.dtype(2))), "fill");
  t->outer = y.span_of(0, axis);
  t->depth = y[axis];
  t->inner = y.span_of(axis + 1, y.rank());
  t->read_index = find_reader(ctx.dtype(0));
  return t;
}

}  // namespace

void register_one_hot(KernelRegistry& registry) { registry.add("OneHot", kAnyType, tile_one_hot, 2); }

}  // namespace asc::cpu
