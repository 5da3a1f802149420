// CumSum and CumProd over [outer, axis, inner], columns in chunks. Integers wrap.
#include <algorithm>
#include <type_traits>

#include "backends/cpu/real_io.h"
#include "backends/cpu/reduce.h"

namespace asc::cpu {
namespace {

struct CumSumTiling : TilingOf<CumSumTiling> {
  const VecTable* vec = &vec_table();
  int64_t outer = 1, axis = 1, inner = 1;
  bool is_exclusive = false, is_reverse = false;
};

struct SumOp {
  static constexpr int kIdentity = 0;
  template <typename V>
  static V apply(V a, V b) {
    if constexpr (std::is_integral_v<V>)
      return static_cast<V>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    else
      return a + b;
  }
};
struct ProductOp {
  static constexpr int kIdentity = 1;
  template <typename V>
  static V apply(V a, V b) {
    if constexpr (std::is_integral_v<V>)
      return static_cast<V>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else
      return a * b;
  }
};

// `n` columns; consecutive elements of a column are `step` elements apart.
template <typename Op, typename Io>
void sum_columns(const CumSumTiling& t, const typename Io::Element* x, typename Io::Element* y, int64_t n,
                 int64_t step) {
  using Value = typename Io::Value;
  Value sums[kRealChunk], in_buffer[kRealChunk], out_buffer[kRealChunk];
  std::fill_n(sums, n, Value(Op::kIdentity));
  for (int64_t j = 0; j < t.axis; ++j, x += step, y += step) {
    const Value* row = Io::load(*t.vec, x, in_buffer, n);
    Value* result = Io::target(y, out_buffer);
    for (int64_t i = 0; i < n; ++i) {
      const Value next = Op::apply(sums[i], row[i]);
      result[i] = t.is_exclusive ? sums[i] : next;
      sums[i] = next;
    }
    Io::store(*t.vec, result, y, n);
  }
}

// One contiguous lane, without the detour over arrays of sums.
template <typename Op, typename V>
void sum_lane(const CumSumTiling& t, const V* x, V* y) {
  V sum = Op::kIdentity;
  for (int64_t j = 0; j < t.axis; ++j) {
    const int64_t at = t.is_reverse ? t.axis - 1 - j : j;
    const V next = Op::apply(sum, x[at]);
    y[at] = t.is_exclusive ? sum : next;
    sum = next;
  }
}

template <typename Op, typename Io>
Status launch_cumsum(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const CumSumTiling*>(task.tiling);
  const auto* x = task.input<typename Io::Element>(slots, 0);
  auto* y = task.output<typename Io::Element>(slots, 0);
  if constexpr (!Io::kConverts) {
    if (t.inner == 1) {
      for (int64_t o = 0; o < t.outer; ++o, x += t.axis, y += t.axis) sum_lane<Op>(t, x, y);
      return Status::kOk;
    }
  }
  const int64_t first = t.is_reverse ? (t.axis - 1) * t.inner : 0;
  const int64_t step = t.is_reverse ? -t.inner : t.inner;
  for (int64_t o = 0; o < t.outer; ++o, x += t.axis * t.inner, y += t.axis * t.inner)
    for (int64_t c = 0; c < t.inner; c += kRealChunk)
      sum_columns<Op, Io>(t, x + first + c, y + first + c, std::min(kRealChunk, t.inner - c), step);
  return Status::kOk;
}

template <typename Op>
LaunchFn find_cumsum(const TilingContext& ctx) {
  switch (ctx.dtype(0)) {
    case DType::kFloat32:
      return launch_cumsum<Op, Float32Io>;
    case DType::kFloat64:
      return launch_cumsum<Op, PlainIo<double>>;
    case DType::kFloat16:
      return launch_cumsum<Op, Float16Io>;
    case DType::kBFloat16:
      return launch_cumsum<Op, BFloat16Io>;
    case DType::kInt32:
      return launch_cumsum<Op, PlainIo<int32_t>>;
    case DType::kUInt32:
      return launch_cumsum<Op, PlainIo<uint32_t>>;
    case DType::kInt64:
      return launch_cumsum<Op, PlainIo<int64_t>>;
    case DType::kUInt64:
      return launch_cumsum<Op, PlainIo<uint64_t>>;
    default:
      ctx.unsupported(std::string("element type ") + name_of(ctx.dtype(0)) + "; cast the input");
  }
}

template <typename Op>
std::shared_ptr<const Tiling> tile_cumsum(const TilingContext& ctx) {
  const Shape& x = ctx.input(0);
  const int axis = checked_axis(ctx, read_int(ctx, 1), x.rank());
  const LaunchFn launch = find_cumsum<Op>(ctx);
  if (count_of(x) == 0) return create_empty_tiling();
  auto t = create_tiling<CumSumTiling>(launch, "scalar");
  t->outer = x.span_of(0, axis);
  t->axis = x[axis];
  t->inner = x.span_of(axis + 1, x.rank());
  t->is_exclusive = ctx.attr("exclusive", 0) != 0;
  t->is_reverse = ctx.attr("reverse", 0) != 0;
  return t;
}

}  // namespace

void register_cumsum(KernelRegistry& registry) {
  registry.add("CumSum", kNumbers, tile_cumsum<SumOp>);
  registry.add("CumProd", kNumbers, tile_cumsum<ProductOp>);
}

}  // namespace asc::cpu
