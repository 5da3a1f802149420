// Add, Sub, Mul, PRelu and the comparisons. Integers wrap.
#include "backends/cpu/elementwise_binary.h"
#include "backends/cpu/wrapping.h"

namespace asc {
namespace {

struct PReluOp {
  template <typename T>
  static T apply(T x, T slope) {
    return x < 0 ? MulOp::apply(x, slope) : x;
  }
};
struct EqualOp {
  template <typename T>
  static bool apply(T a, T b) {
    return a == b;
  }
};
struct EqualBoolOp {
  static bool apply(uint8_t a, uint8_t b) { return (a != 0) == (b != 0); }
};
struct LessOp {
  template <typename T>
  static bool apply(T a, T b) {
    return a < b;
  }
};
struct LessOrEqualOp {
  template <typename T>
  static bool apply(T a, T b) {
    return a <= b;
  }
};
struct GreaterOp {
  template <typename T>
  static bool apply(T a, T b) {
    return a > b;
  }
};
struct GreaterOrEqualOp {
  template <typename T>
  static bool apply(T a, T b) {
    return a >= b;
  }
};

// `Y` void: the operands' type.
template <typename Op, auto M, typename Y = void>
void add_operator(KernelRegistry& registry, const char* name) {
  registry.add(name, DType::kFloat32, tile_vector<M>);
  registry.add(name, kHalfFloats, tile_half<M>);
  const auto add = [&](auto example) {
    using T = decltype(example);
    registry.add(name, dtype_of<T>(), tile_plain<T, std::conditional_t<std::is_void_v<Y>, T, Y>, Op>);
  };
  add(double{});
  for_integers(add);
}

}  // namespace

void register_arithmetic_kernels(KernelRegistry& registry) {
  add_operator<AddOp, &VecTable::add>(registry, "Add");
  add_operator<SubOp, &VecTable::sub>(registry, "Sub");
  add_operator<MulOp, &VecTable::mul>(registry, "Mul");
  add_operator<PReluOp, &VecTable::prelu>(registry, "PRelu");
  add_operator<EqualOp, &VecTable::equal, uint8_t>(registry, "Equal");
  add_operator<LessOp, &VecTable::less, uint8_t>(registry, "Less");
  add_operator<LessOrEqualOp, &VecTable::less_equal, uint8_t>(registry, "LessOrEqual");
  add_operator<GreaterOp, &VecTable::greater, uint8_t>(registry, "Greater");
  add_operator<GreaterOrEqualOp, &VecTable::greater_equal, uint8_t>(registry, "GreaterOrEqual");
  registry.add("Equal", DType::kBool, tile_plain<uint8_t, uint8_t, EqualBoolOp>);
}

}  // namespace asc
