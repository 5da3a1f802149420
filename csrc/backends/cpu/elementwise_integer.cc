// Unary operators of integers and booleans, and the tests IsNaN and IsInf, which look at bits.
#include "backends/cpu/elementwise.h"
#include "backends/cpu/wrapping.h"

namespace asc {
namespace {

struct MapTiling : PlainTiling<MapTiling> {
  size_t count = 0;
};

// The smallest integer is its own negative.
struct NegOp {
  template <typename T>
  static T apply(T x) {
    return static_cast<T>(0 - static_cast<Wrapping<T>>(x));
  }
};
struct AbsOp {
  template <typename T>
  static T apply(T x) {
    return x < 0 ? NegOp::apply(x) : x;
  }
};
struct SignOp {
  template <typename T>
  static T apply(T x) {
    return static_cast<T>(static_cast<int>(x > 0) - static_cast<int>(x < 0));
  }
};
struct ReluOp {
  template <typename T>
  static T apply(T x) {
    return x < 0 ? T{0} : x;
  }
};
struct BitNotOp {
  template <typename T>
  static T apply(T x) {
    return static_cast<T>(~x);
  }
};
struct NotOp {
  static uint8_t apply(uint8_t x) { return x == 0; }
};

template <typename T, typename Op>
Status launch_map(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const MapTiling*>(task.tiling);
  const auto* x = task.input<T>(slots, 0);
  auto* y = task.output<T>(slots, 0);
  for (size_t i = 0; i < t.count; ++i) y[i] = Op::apply(x[i]);
  return Status::kOk;
}

template <typename T, typename Op>
std::shared_ptr<const Tiling> tile_map(const TilingContext& ctx) {
  auto t = std::make_shared<MapTiling>();
  t->launch = launch_map<T, Op>;
  t->implementation = "scalar";
  t->count = element_count(ctx.output(0));
  return t;
}

// --- IsNaN, IsInf ----------------------------------------------------------------------------------------------------

// Bits of a float type: those of +inf, and the sign.
template <typename U>
struct FloatBits {
  U infinity, sign;
};
constexpr FloatBits<uint16_t> kBits16 = {0x7C00, 0x8000}, kBitsBFloat16 = {0x7F80, 0x8000};
constexpr FloatBits<uint32_t> kBits32 = {0x7F800000u, 0x80000000u};
constexpr FloatBits<uint64_t> kBits64 = {0x7FF0000000000000ull, 0x8000000000000000ull};

template <typename U>
struct TestTiling : PlainTiling<TestTiling<U>> {
  size_t count = 0;
  FloatBits<U> bits{};
  bool nan = false, positive = false, negative = false;  // what gives true
};

template <typename U>
Status launch_test(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const TestTiling<U>*>(task.tiling);
  const auto* x = task.input<U>(slots, 0);
  auto* y = task.output<uint8_t>(slots, 0);
  for (size_t i = 0; i < t.count; ++i) {
    const U magnitude = static_cast<U>(x[i] & ~t.bits.sign);
    const bool is_inf = magnitude == t.bits.infinity;
    y[i] = t.nan ? magnitude > t.bits.infinity : is_inf && ((x[i] & t.bits.sign) != 0 ? t.negative : t.positive);
  }
  return Status::kOk;
}

template <typename U>
std::shared_ptr<const Tiling> tile_test(const TilingContext& ctx, const FloatBits<U>& bits) {
  auto t = std::make_shared<TestTiling<U>>();
  t->launch = launch_test<U>;
  t->implementation = "scalar";
  t->count = element_count(ctx.output(0));
  t->bits = bits;
  t->nan = ctx.node().op == "IsNaN";
  t->positive = ctx.attr("detect_positive", 1) != 0;
  t->negative = ctx.attr("detect_negative", 1) != 0;
  return t;
}

struct VectorTestTiling : PlainTiling<VectorTestTiling> {
  size_t count = 0;
  VecTable::Predicate test = nullptr;
};

Status launch_vector_test(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const VectorTestTiling*>(task.tiling);
  t.test(task.input<float>(slots, 0), task.output<uint8_t>(slots, 0), t.count);
  return Status::kOk;
}

std::shared_ptr<const Tiling> tile_is_nan32(const TilingContext& ctx) {
  auto t = std::make_shared<VectorTestTiling>();
  t->launch = launch_vector_test;
  t->implementation = "vector";
  t->count = element_count(ctx.output(0));
  t->test = vec_table().is_nan;
  return t;
}

template <const auto& kBits>
std::shared_ptr<const Tiling> tile_bits(const TilingContext& ctx) {
  return tile_test(ctx, kBits);
}

}  // namespace

void register_integer_unary_kernels(KernelRegistry& registry) {
  for_integers([&](auto example) {
    using T = decltype(example);
    registry.add("Abs", dtype_of<T>(), tile_map<T, AbsOp>);
    registry.add("Sign", dtype_of<T>(), tile_map<T, SignOp>);
    registry.add("BitwiseNot", dtype_of<T>(), tile_map<T, BitNotOp>);
  });
  for_types(SignedTypes{}, [&](auto example) {
    using T = decltype(example);
    registry.add("Neg", dtype_of<T>(), tile_map<T, NegOp>);
    registry.add("Relu", dtype_of<T>(), tile_map<T, ReluOp>);
  });
  registry.add("Not", DType::kBool, tile_map<uint8_t, NotOp>);
  registry.add("IsNaN", DType::kFloat32, tile_is_nan32);
  registry.add("IsInf", DType::kFloat32, tile_bits<kBits32>);
  for (const char* op : {"IsNaN", "IsInf"}) {
    registry.add(op, DType::kFloat64, tile_bits<kBits64>);
    registry.add(op, DType::kFloat16, tile_bits<kBits16>);
    registry.add(op, DType::kBFloat16, tile_bits<kBitsBFloat16>);
  }
}

}  // namespace asc
