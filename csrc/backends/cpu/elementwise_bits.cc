// Logical and bitwise operators.
#include "backends/cpu/elementwise_binary.h"
#include "backends/cpu/wrapping.h"

namespace asc {
namespace {

struct AndOp {
  static bool apply(uint8_t a, uint8_t b) { return a != 0 && b != 0; }
};
struct OrOp {
  static bool apply(uint8_t a, uint8_t b) { return a != 0 || b != 0; }
};
struct XorOp {
  static bool apply(uint8_t a, uint8_t b) { return (a != 0) != (b != 0); }
};
struct BitAndOp {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct BitOrOp {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct BitXorOp {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
// All bits leave where the distance reaches the width, or is negative; the sign stays in a shift to the right.
template <typename T>
bool is_distance(T b) {
  return static_cast<std::make_unsigned_t<T>>(b) < sizeof(T) * 8;
}
struct ShiftLeftOp {
  template <typename T>
  static T apply(T a, T b) {
    return is_distance(b) ? static_cast<T>(static_cast<Wrapping<T>>(a) << b) : T{0};
  }
};
struct ShiftRightOp {
  template <typename T>
  static T apply(T a, T b) {
    return is_distance(b) ? static_cast<T>(a >> b) : static_cast<T>(a < T{0} ? -1 : 0);
  }
};

template <typename T>
std::shared_ptr<const Tiling> tile_shift(const TilingContext& ctx) {
  const std::string_view direction = ctx.attributes().get_string("direction", "");
  if (direction == "LEFT") return tile_plain<T, T, ShiftLeftOp>(ctx);
  if (direction == "RIGHT") return tile_plain<T, T, ShiftRightOp>(ctx);
  ctx.unsupported("direction must be LEFT or RIGHT: got '" + std::string(direction) + "'");
}

}  // namespace

void register_bit_kernels(KernelRegistry& registry) {
  registry.add("And", DType::kBool, tile_plain<uint8_t, uint8_t, AndOp>);
  registry.add("Or", DType::kBool, tile_plain<uint8_t, uint8_t, OrOp>);
  registry.add("Xor", DType::kBool, tile_plain<uint8_t, uint8_t, XorOp>);
  for_integers([&](auto example) {
    using T = decltype(example);
    registry.add("BitwiseAnd", dtype_of<T>(), tile_plain<T, T, BitAndOp>);
    registry.add("BitwiseOr", dtype_of<T>(), tile_plain<T, T, BitOrOp>);
    registry.add("BitwiseXor", dtype_of<T>(), tile_plain<T, T, BitXorOp>);
    registry.add("BitShift", dtype_of<T>(), tile_shift<T>);
  });
}

}  // namespace asc
