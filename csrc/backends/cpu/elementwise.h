// What the element-wise kernels share: type lists, 16-bit floats, tilings of known size.
#pragma once

#include <memory>

#include "backends/cpu/broadcast.h"
#include "backends/cpu/vec_table.h"
#include "kernel/kernel.h"

namespace asc {

void register_unary_kernels(KernelRegistry& registry);          // float functions
void register_integer_unary_kernels(KernelRegistry& registry);  // Abs, Neg, …, Not, BitwiseNot; IsNaN, IsInf
void register_clip_kernels(KernelRegistry& registry);
void register_arithmetic_kernels(KernelRegistry& registry);  // Add, Sub, Mul, PRelu, comparisons
void register_division_kernels(KernelRegistry& registry);    // Div, Mod
void register_bit_kernels(KernelRegistry& registry);         // And, Or, Xor, Bitwise*, BitShift
void register_pow_kernels(KernelRegistry& registry);
void register_variadic_kernels(KernelRegistry& registry);  // Min, Max, Sum, Mean
void register_cast_kernels(KernelRegistry& registry);      // Cast, CastLike
void register_where_kernels(KernelRegistry& registry);
void register_copy_kernels(KernelRegistry& registry);  // views whose result may not share memory

// A tiling that holds everything inline.
template <typename Derived>
struct PlainTiling : Tiling {
  size_t bytes() const override { return sizeof(Derived); }
};

template <typename T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::kFloat32;
  if constexpr (std::is_same_v<T, double>) return DType::kFloat64;
  if constexpr (std::is_same_v<T, int8_t>) return DType::kInt8;
  if constexpr (std::is_same_v<T, uint8_t>) return DType::kUInt8;
  if constexpr (std::is_same_v<T, int16_t>) return DType::kInt16;
  if constexpr (std::is_same_v<T, uint16_t>) return DType::kUInt16;
  if constexpr (std::is_same_v<T, int32_t>) return DType::kInt32;
  if constexpr (std::is_same_v<T, uint32_t>) return DType::kUInt32;
  if constexpr (std::is_same_v<T, int64_t>) return DType::kInt64;
  if constexpr (std::is_same_v<T, uint64_t>) return DType::kUInt64;
}

template <typename... Ts>
struct Types {};
using SignedTypes = Types<int8_t, int16_t, int32_t, int64_t>;
using UnsignedTypes = Types<uint8_t, uint16_t, uint32_t, uint64_t>;

// Calls f(T{}) for each type of the list.
template <typename F, typename... Ts>
void for_types(Types<Ts...>, const F& f) {
  (f(Ts{}), ...);
}
template <typename F>
void for_integers(const F& f) {
  for_types(SignedTypes{}, f);
  for_types(UnsignedTypes{}, f);
}

// float16 and bfloat16 are computed in float32, chunk by chunk.
constexpr size_t kChunk = 256;

struct HalfCodec {
  void (*widen)(const uint16_t* x, float* y, size_t n) = nullptr;
  void (*narrow)(const float* x, uint16_t* y, size_t n) = nullptr;
};
inline HalfCodec half_codec(DType t) {
  const VecTable& v = vec_table();
  if (t == DType::kFloat16) return {v.float16_to_float32, v.float32_to_float16};
  return {v.bfloat16_to_float32, v.float32_to_bfloat16};
}

// Inputs that an element-wise kernel may write its output over, as bits: of its shape and element type.
inline uint64_t inputs_like_output(const TilingContext& ctx) {
  uint64_t bits = 0;
  for (int i = 0; i < ctx.input_count() && i < 64; ++i)
    if (ctx.has_input(i) && ctx.dtype(i) == ctx.output_dtype(0) && ctx.input(i) == ctx.output(0))
      bits |= uint64_t{1} << i;
  return bits;
}

inline size_t element_count(const Shape& s) { return static_cast<size_t>(s.num_elements()); }

}  // namespace asc
