#include "backends/cpu/cast.h"

#include <cstring>
#include <limits>

#include "backends/cpu/elementwise.h"

namespace asc {
namespace {

// Element types that C++ lacks or stores otherwise.
struct Float16 {};
struct BFloat16 {};
struct Bool {};

template <typename T>
constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <typename T>
using Storage = std::conditional_t<kIsHalf<T>, uint16_t, std::conditional_t<std::is_same_v<T, Bool>, uint8_t, T>>;

// --- single values -----------------------------------------------------------------------------------------------

constexpr double kTwo31 = 2147483648.0, kTwo63 = 9223372036854775808.0;

int32_t to_int32(double x) {
  return x > -kTwo31 - 1 && x < kTwo31 ? static_cast<int32_t>(x) : std::numeric_limits<int32_t>::min();
}
int64_t to_int64(double x) {
  return x >= -kTwo63 && x < kTwo63 ? static_cast<int64_t>(x) : std::numeric_limits<int64_t>::min();
}
template <typename T>
T to_integer(double x) {
  if constexpr (std::is_same_v<T, uint64_t>)
    return x >= kTwo63 && x < 2 * kTwo63 ? static_cast<uint64_t>(x) : static_cast<uint64_t>(to_int64(x));
  else if constexpr (sizeof(T) == 8 || std::is_same_v<T, uint32_t>)
    return static_cast<T>(to_int64(x));
  else
    return static_cast<T>(to_int32(x));
}

template <typename From, typename To>
Storage<To> convert(Storage<From> x) {
  if constexpr (std::is_same_v<To, Bool>)
    return x != 0;
  else if constexpr (std::is_same_v<From, Bool>)
    return static_cast<To>(x != 0);
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
    return to_integer<To>(x);
  else
    return static_cast<To>(x);
}

// To float32, rounding to odd: a second rounding to 16 bits then gives what one rounding would have given.
float to_float_odd(double x) {
  const float f = static_cast<float>(x);
  if (static_cast<double>(f) == x || x != x) return f;
  uint32_t bits;
  std::memcpy(&bits, &f, sizeof bits);
  const bool grew = (x > 0) == (static_cast<double>(f) > x);
  bits = (grew ? bits - 1 : bits) | 1u;
  float odd;
  std::memcpy(&odd, &bits, sizeof odd);
  return odd;
}

// --- rows ----------------------------------------------------------------------------------------------------------

template <typename T>
HalfCodec codec_of() {
  return half_codec(std::is_same_v<T, Float16> ? DType::kFloat16 : DType::kBFloat16);
}

template <typename From, typename To>
void plain_row(const Storage<From>* x, Storage<To>* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] = convert<From, To>(x[i]);
}

template <typename From>
void fill_floats(const Storage<From>* x, float* y, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<From, float>)
      y[i] = x[i];
    else if constexpr (std::is_same_v<From, Bool>)
      y[i] = x[i] != 0 ? 1.0f : 0.0f;
    else
      y[i] = to_float_odd(static_cast<double>(x[i]));
  }
}

template <typename From, typename To>
void convert_row(const void* from, void* to, size_t n) {
  const auto* x = static_cast<const Storage<From>*>(from);
  auto* y = static_cast<Storage<To>*>(to);
  if constexpr (std::is_same_v<From, To> && !std::is_same_v<To, Bool>) {
    if (from != to) std::memcpy(y, x, n * sizeof(*x));
  } else if constexpr (!kIsHalf<From> && !kIsHalf<To>) {
    plain_row<From, To>(x, y, n);
  } else if constexpr (kIsHalf<From> && std::is_same_v<To, float>) {
    codec_of<From>().widen(x, y, n);
  } else if constexpr (std::is_same_v<From, float> && kIsHalf<To>) {
    codec_of<To>().narrow(x, y, n);
  } else {
    alignas(kAlignment) float chunk[kChunk];
    for (size_t i = 0; i < n; i += kChunk) {
      const size_t m = n - i < kChunk ? n - i : kChunk;
      if constexpr (kIsHalf<From>)
        codec_of<From>().widen(x + i, chunk, m);
      else
        fill_floats<From>(x + i, chunk, m);
      if constexpr (kIsHalf<To>)
        codec_of<To>().narrow(chunk, y + i, m);
      else
        plain_row<float, To>(chunk, y + i, m);
    }
  }
}

// --- dispatch --------------------------------------------------------------------------------------------------------

template <typename T>
struct Tag {
  using Type = T;
};

template <typename F>
CastRow with_type(DType t, const F& f) {
  switch (t) {
    case DType::kFloat32:
      return f(Tag<float>{});
    case DType::kFloat64:
      return f(Tag<double>{});
    case DType::kFloat16:
      return f(Tag<Float16>{});
    case DType::kBFloat16:
      return f(Tag<BFloat16>{});
    case DType::kInt8:
      return f(Tag<int8_t>{});
    case DType::kUInt8:
      return f(Tag<uint8_t>{});
    case DType::kInt16:
      return f(Tag<int16_t>{});
    case DType::kUInt16:
      return f(Tag<uint16_t>{});
    case DType::kInt32:
      return f(Tag<int32_t>{});
    case DType::kUInt32:
      return f(Tag<uint32_t>{});
    case DType::kInt64:
      return f(Tag<int64_t>{});
    case DType::kUInt64:
      return f(Tag<uint64_t>{});
    case DType::kBool:
      return f(Tag<Bool>{});
    case DType::kUndefined:
      return nullptr;
  }
  return nullptr;
}

struct CastTiling : PlainTiling<CastTiling> {
  size_t count = 0;
  CastRow row = nullptr;
};

Status launch_cast(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const CastTiling*>(task.tiling);
  t.row(task.input<void>(slots, 0), task.output<void>(slots, 0), t.count);
  return Status::kOk;
}

std::shared_ptr<const Tiling> tile_cast(const TilingContext& ctx) {
  auto t = std::make_shared<CastTiling>();
  t->launch = launch_cast;
  t->count = element_count(ctx.output(0));
  t->row = cast_row(ctx.dtype(0), ctx.output_dtype(0));
  if (!t->row) ctx.unsupported(std::string("no conversion to ") + name_of(ctx.output_dtype(0)));
  t->implementation = ctx.dtype(0) == ctx.output_dtype(0) ? "copy" : "cast";
  return t;
}

}  // namespace

CastRow cast_row(DType from, DType to) {
  return with_type(from, [&](auto source) {
    return with_type(to, [&](auto target) -> CastRow {
      return convert_row<typename decltype(source)::Type, typename decltype(target)::Type>;
    });
  });
}

void register_cast_kernels(KernelRegistry& registry) {
  registry.add("Cast", kAnyType, tile_cast);
  registry.add("CastLike", kAnyType, tile_cast);
}

}  // namespace asc
