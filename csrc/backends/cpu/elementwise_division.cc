// Div and Mod. Integer division truncates; Mod takes the sign of the divisor, or with fmod=1 that of the dividend.
// Division of an integer by zero fails the launch; the smallest integer divided by -1 wraps.
#include <cmath>

#include "backends/cpu/elementwise_binary.h"
#include "backends/cpu/wrapping.h"

namespace asc {
namespace {

// Divisors 0 and -1 never reach apply.
struct DivOp {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(a / b);
  }
  template <typename T>
  static T by_minus_one(T a) {
    return static_cast<T>(0 - static_cast<Wrapping<T>>(a));
  }
};
struct TruncatedModOp {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(a % b);
  }
  template <typename T>
  static T by_minus_one(T) {
    return 0;
  }
};
struct FlooredModOp : TruncatedModOp {
  template <typename T>
  static T apply(T a, T b) {
    const T r = static_cast<T>(a % b);
    return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
  }
};

template <typename T, typename Op>
bool divide(const T* a, size_t step_a, const T* b, size_t step_b, T* y, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const T divisor = b[i * step_b];
    if (divisor == 0) return false;
    if (std::is_signed_v<T> && divisor == static_cast<T>(-1))
      y[i] = Op::template by_minus_one<T>(a[i * step_a]);
    else
      y[i] = Op::template apply<T>(a[i * step_a], divisor);
  }
  return true;
}

template <typename T, typename Op>
struct DivisionRows {
  static bool vv(const T* a, const T* b, T* y, size_t n) { return divide<T, Op>(a, 1, b, 1, y, n); }
  static bool sv(const T* a, const T* b, T* y, size_t n) { return divide<T, Op>(a, 0, b, 1, y, n); }
  static bool vs(const T* a, const T* b, T* y, size_t n) { return divide<T, Op>(a, 1, b, 0, y, n); }
  static constexpr RowForms<bool (*)(const T*, const T*, T*, size_t)> kForms = {vv, sv, vs};
};

template <typename T>
std::shared_ptr<const Tiling> tile_integer_div(const TilingContext& ctx) {
  return tile_rows(ctx, DivisionRows<T, DivOp>::kForms, "scalar", "integer division by zero; check the divisor");
}
template <typename T>
std::shared_ptr<const Tiling> tile_integer_mod(const TilingContext& ctx) {
  const char* error = "integer modulo by zero; check the divisor";
  if (ctx.attr("fmod", 0)) return tile_rows(ctx, DivisionRows<T, TruncatedModOp>::kForms, "scalar", error);
  return tile_rows(ctx, DivisionRows<T, FlooredModOp>::kForms, "scalar", error);
}

struct FloatDivOp {
  static double apply(double a, double b) { return a / b; }
};
struct FmodOp {
  static float apply(float a, float b) { return std::fmod(a, b); }
  static double apply(double a, double b) { return std::fmod(a, b); }
};

// The sign of the divisor, as Python and NumPy have it.
struct FloatModOp {
  template <typename T>
  static T apply(T a, T b) {
    const T r = std::fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
};

template <typename Op>
std::shared_ptr<const Tiling> tile_float_mod(const TilingContext& ctx) {
  if (ctx.dtype(0) == DType::kFloat64) return tile_plain<double, double, Op>(ctx);
  if (ctx.dtype(0) == DType::kFloat32) return tile_plain<float, float, Op>(ctx);
  return tile_half_rows(ctx, PlainRows<float, float, Op>::kForms, "scalar");
}
std::shared_ptr<const Tiling> choose_float_mod(const TilingContext& ctx) {
  return ctx.attr("fmod", 0) ? tile_float_mod<FmodOp>(ctx) : tile_float_mod<FloatModOp>(ctx);
}

}  // namespace

void register_division_kernels(KernelRegistry& registry) {
  registry.add("Div", DType::kFloat32, tile_vector<&VecTable::div>);
  registry.add("Div", kHalfFloats, tile_half<&VecTable::div>);
  registry.add("Div", DType::kFloat64, tile_plain<double, double, FloatDivOp>);
  registry.add("Mod", kFloats, choose_float_mod);
  for_integers([&](auto example) {
    using T = decltype(example);
    registry.add("Div", dtype_of<T>(), tile_integer_div<T>);
    registry.add("Mod", dtype_of<T>(), tile_integer_mod<T>);
  });
}

}  // namespace asc
