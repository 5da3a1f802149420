#include "backends/cpu/combine.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/vec_table.h"
#include "backends/cpu/wrapping.h"

namespace asc::cpu {
namespace {

// NaN wins, as in NumPy.
struct MinOf {
  template <typename T>
  static T apply(T a, T b) {
    return a != a || a < b ? a : b;
  }
};

struct MaxOf {
  template <typename T>
  static T apply(T a, T b) {
    return a != a || a > b ? a : b;
  }
};

template <typename F, typename T>
void combine(void* into, const void* from, int64_t count) {
  T* a = static_cast<T*>(into);
  const T* b = static_cast<const T*>(from);
  for (int64_t i = 0; i < count; ++i) a[i] = F::apply(a[i], b[i]);
}

template <typename F, bool kIsBFloat16>
void combine_half(void* into, const void* from, int64_t count) {
  constexpr int64_t kChunk = 128;
  const VecTable& v = vec_table();
  const auto widen = kIsBFloat16 ? v.bfloat16_to_float32 : v.float16_to_float32;
  const auto narrow = kIsBFloat16 ? v.float32_to_bfloat16 : v.float32_to_float16;
  uint16_t* a = static_cast<uint16_t*>(into);
  const uint16_t* b = static_cast<const uint16_t*>(from);
  float wide_a[kChunk], wide_b[kChunk];
  for (int64_t i = 0; i < count; i += kChunk) {
    const int64_t n = std::min(kChunk, count - i);
    widen(a + i, wide_a, n);
    widen(b + i, wide_b, n);
    combine<F, float>(wide_a, wide_b, n);
    narrow(wide_a, a + i, n);
  }
}

template <size_t N>
void overwrite(void* into, const void* from, int64_t count) {
  if (count == 1)
    std::memcpy(into, from, N);
  else
    std::memcpy(into, from, static_cast<size_t>(count) * N);
}

template <typename F>
CombineFn combine_for(DType type) {
  switch (type) {
    case DType::kFloat32:
      return combine<F, float>;
    case DType::kFloat64:
      return combine<F, double>;
    case DType::kFloat16:
      return combine_half<F, false>;
    case DType::kBFloat16:
      return combine_half<F, true>;
    case DType::kInt8:
      return combine<F, int8_t>;
    case DType::kInt16:
      return combine<F, int16_t>;
    case DType::kUInt16:
      return combine<F, uint16_t>;
    case DType::kInt32:
      return combine<F, int32_t>;
    case DType::kUInt32:
      return combine<F, uint32_t>;
    case DType::kInt64:
      return combine<F, int64_t>;
    case DType::kUInt64:
      return combine<F, uint64_t>;
    default:
      return combine<F, uint8_t>;
  }
}

CombineFn overwrite_for(size_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return overwrite<1>;
    case 2:
      return overwrite<2>;
    case 4:
      return overwrite<4>;
    default:
      return overwrite<8>;
  }
}

}  // namespace

CombineFn find_combine(const TilingContext& ctx, DType type) {
  const auto reduction = ctx.attributes().get_string("reduction", "none");
  const bool is_bool = type == DType::kBool;  // add is "or", mul is "and"
  if (reduction == "none") return overwrite_for(size_of(type));
  if (reduction == "max" || (reduction == "add" && is_bool)) return combine_for<MaxOf>(type);
  if (reduction == "min" || (reduction == "mul" && is_bool)) return combine_for<MinOf>(type);
  if (reduction == "add") return combine_for<AddOp>(type);
  if (reduction == "mul") return combine_for<MulOp>(type);
  fail_tiling(ctx, "reduction '" + std::string(reduction) + "' is unknown; use none, add, mul, min or max");
}

}  // namespace asc::cpu
