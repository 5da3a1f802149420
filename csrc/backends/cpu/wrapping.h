// Arithmetic whose integers wrap, as operators of the element-wise kernels and of scatters.
#pragma once

#include <cstdint>
#include <type_traits>

namespace asc {

// Unsigned type in which arithmetic on T wraps without promotion to int.
template <typename T>
using Wrapping = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

struct AddOp {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
    else
      return a + b;
  }
};
struct SubOp {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
    else
      return a - b;
  }
};
struct MulOp {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
    else
      return a * b;
  }
};

}  // namespace asc
