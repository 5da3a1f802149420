// Pow. Equal float types have row functions; mixed and integer types go through chunks of float64 or 64-bit integers.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/cast.h"
#include "backends/cpu/element_step.h"
#include "backends/cpu/elementwise_binary.h"

namespace asc {
namespace {

struct PowOp {
  static float apply(float a, float b) { return std::pow(a, b); }
  static double apply(double a, double b) { return std::pow(a, b); }
};
using Rows32 = PlainRows<float, float, PowOp>;

constexpr size_t kChunk = 256;  // elements of what is kept between two vector functions

// `y` may be `a`.
void cube(const float* a, float* y, size_t n) {
  const VecTable& v = vec_table();
  float square[kChunk];
  for (size_t i = 0; i < n; i += kChunk) {
    const size_t count = std::min(kChunk, n - i);
    v.mul.vv(a + i, a + i, square, count);
    v.mul.vv(square, a + i, y + i, count);
  }
}

// pow(x, 0.5), which differs from the square root at -0 and -inf.
void pow_half(const float* a, float* y, size_t n) {
  constexpr float kZero = 0, kInfinity = std::numeric_limits<float>::infinity(), kLowest = -kInfinity;
  const VecTable& v = vec_table();
  float root[kChunk];
  uint8_t is_lowest[kChunk];
  for (size_t i = 0; i < n; i += kChunk) {
    const size_t count = std::min(kChunk, n - i);
    v.equal.vs(a + i, &kLowest, is_lowest, count);
    v.sqrt(a + i, root, count);
    v.add.vs(root, &kZero, y + i, count);
    for (size_t k = 0; k < count; ++k)
      if (is_lowest[k]) y[i + k] = kInfinity;
  }
}

// A scalar exponent is nearly always one of these; none is less accurate than the C library by more than 1 ulp.
void pow_scalar(const float* a, const float* b, float* y, size_t n) {
  const float exponent = *b;
  if (exponent == 2.0f)
    vec_table().mul.vv(a, a, y, n);
  else if (exponent == 3.0f)
    cube(a, y, n);
  else if (exponent == 0.5f)
    pow_half(a, y, n);
  else if (exponent == -1.0f)
    vec_table().reciprocal(a, y, n);
  else
    Rows32::vs(a, b, y, n);
}
constexpr RowForms<VecTable::Binary> kForms32 = {Rows32::vv, Rows32::sv, pow_scalar};

// --- through a common type -----------------------------------------------------------------------------------------

struct MixedTiling : PlainTiling<MixedTiling> {
  CastRow base_in = nullptr, exponent_in = nullptr, result_out = nullptr;
  size_t base_size = 0, exponent_size = 0;
  bool is_exponent_signed = false;
  Broadcast<2> shape;
  explicit MixedTiling(const Broadcast<2>& b) : shape(b) {}
};

bool power_row(const MixedTiling&, const double* a, const double* b, double* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] = std::pow(a[i], b[i]);
  return true;
}

// Modulo 2^64; a negative power is 0 but for 1 and -1. False for 0 to a negative power.
bool power(int64_t base, int64_t exponent, bool is_signed, int64_t* result) {
  auto e = static_cast<uint64_t>(exponent);
  if (is_signed && exponent < 0) {
    if (base == 0) return false;
    if (base != 1 && base != -1) return *result = 0, true;
    e &= 1;  // 1 and -1 are their own inverses
  }
  uint64_t r = 1;
  for (auto b = static_cast<uint64_t>(base); e; e >>= 1, b *= b)
    if (e & 1) r *= b;
  *result = static_cast<int64_t>(r);
  return true;
}
bool power_row(const MixedTiling& t, const int64_t* a, const int64_t* b, int64_t* y, size_t n) {
  for (size_t i = 0; i < n; ++i)
    if (!power(a[i], b[i], t.is_exponent_signed, y + i)) return false;
  return true;
}

// Fills a chunk of C from an operand, which may be one repeated element.
template <typename C>
void read_chunk(CastRow row, const char* from, size_t size, bool is_repeated, size_t first, C* to, size_t n) {
  if (!is_repeated) return row(from + first * size, to, n);
  row(from, to, 1);
  for (size_t i = 1; i < n; ++i) to[i] = to[0];
}

template <typename C>
Status launch_mixed(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const MixedTiling*>(task.tiling);
  const auto* base = task.input<char>(slots, 0);
  const auto* exponent = task.input<char>(slots, 1);
  auto* result = task.output<char>(slots, 0);
  const Broadcast<2>& shape = t.shape;
  const bool ok = shape.for_each_row([&](const int64_t* offsets, size_t first) {
    C a[kChunk], b[kChunk], y[kChunk];
    const char* from_a = base + static_cast<size_t>(offsets[0]) * t.base_size;
    const char* from_b = exponent + static_cast<size_t>(offsets[1]) * t.exponent_size;
    for (size_t i = 0; i < shape.row_size; i += kChunk) {
      const size_t n = shape.row_size - i < kChunk ? shape.row_size - i : kChunk;
      read_chunk(t.base_in, from_a, t.base_size, shape.is_repeated[0], i, a, n);
      read_chunk(t.exponent_in, from_b, t.exponent_size, shape.is_repeated[1], i, b, n);
      if (!power_row(t, a, b, y, n)) return false;
      t.result_out(y, result + (first + i) * t.base_size, n);
    }
    return true;
  });
  return ok ? Status::kOk
            : worker.fail(Status::kInvalidValue, "integer 0 to a negative power; check base and exponent");
}

std::shared_ptr<const Tiling> tile_mixed(const TilingContext& ctx) {
  const DType base = ctx.dtype(0), exponent = ctx.dtype(1);
  const bool is_integral = !is_float(base) && !is_float(exponent);
  const DType common = is_integral ? DType::kInt64 : DType::kFloat64;
  auto t = std::make_shared<MixedTiling>(binary_shape(ctx));
  t->base_in = cast_row(base, common);
  t->exponent_in = cast_row(exponent, common);
  t->result_out = cast_row(common, base);
  if (!t->exponent_in) ctx.unsupported("Pow needs an exponent");
  t->base_size = size_of(base);
  t->exponent_size = size_of(exponent);
  t->is_exponent_signed = is_signed_integer(exponent);
  t->implementation = "scalar";
  t->launch = is_integral ? launch_mixed<int64_t> : launch_mixed<double>;
  return t;
}

std::shared_ptr<const Tiling> tile_pow(const TilingContext& ctx) {
  const DType type = ctx.dtype(0);
  if (ctx.dtype(1) != type || is_integer(type)) return tile_mixed(ctx);
  if (type == DType::kFloat32) return tile_rows(ctx, kForms32, "scalar");
  if (type == DType::kFloat64) return tile_plain<double, double, PowOp>(ctx);
  return tile_half_rows(ctx, kForms32, "scalar");
}

}  // namespace

void set_pow_step(ElementStep* step) {
  step->vv = kForms32.vv;
  step->sv = kForms32.sv;
  step->vs = kForms32.vs;
}

void register_pow_kernels(KernelRegistry& registry) { registry.add("Pow", kNumbers, tile_pow); }

}  // namespace asc
