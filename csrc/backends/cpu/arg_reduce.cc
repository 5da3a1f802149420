// ArgMax and ArgMin over [outer, axis, inner]. NaN wins, as in NumPy.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "backends/cpu/real_io.h"
#include "backends/cpu/reduce.h"

namespace asc::cpu {
namespace {

struct ArgTiling : TilingOf<ArgTiling> {
  const VecTable* vec = &vec_table();
  int64_t outer = 1, axis = 1, inner = 1;
  bool is_max = true, select_last = false;
};

// Whether x replaces the best so far. Without branches, which would keep loops from becoming vector code.
template <bool kIsMax, bool kLast, typename V>
inline bool beats(V x, V best) {
  if constexpr (kLast)
    return (x != x) | ((best == best) & (kIsMax ? x >= best : x <= best));
  else
    return (best == best) & ((x != x) | (kIsMax ? x > best : x < best));
}

template <bool kIsMax, bool kLast, typename Io>
int64_t find_in_row(const VecTable& v, const typename Io::Element* x, int64_t n) {
  using Value = typename Io::Value;
  Value buffer[kRealChunk];
  Value best{};
  int64_t position = 0;
  for (int64_t start = 0; start < n; start += kRealChunk) {
    const int64_t count = std::min(kRealChunk, n - start);
    const Value* row = Io::load(v, x + start, buffer, count);
    if (start == 0) best = row[0];
    for (int64_t i = start == 0; i < count; ++i) {
      if (!beats<kIsMax, kLast>(row[i], best)) continue;
      best = row[i];
      position = start + i;
    }
  }
  return position;
}

// Float32 in two passes: the vector maximum, then the place where it stands.
template <bool kIsMax, bool kLast>
int64_t find_in_float_row(const VecTable& v, const float* x, int64_t n) {
  const float best = kIsMax ? v.max_of(x, n) : v.min_of(x, n);
  const bool is_nan = best != best;
  const auto matches = [&](int64_t i) { return is_nan ? x[i] != x[i] : x[i] == best; };
  if constexpr (kLast) {
    int64_t i = n - 1;
    while (i > 0 && !matches(i)) --i;
    return i;
  } else {
    int64_t i = 0;
    while (i < n - 1 && !matches(i)) ++i;
    return i;
  }
}

// Places are kept as wide as values where that is 4 bytes, so that one vector instruction chooses as many of either.
template <bool kIsMax, bool kLast, typename Io>
void find_in_columns(const ArgTiling& t, const typename Io::Element* x, int64_t* y) {
  using Value = typename Io::Value;
  using Place = std::conditional_t<sizeof(Value) == 4, int32_t, int64_t>;
  Value buffer[kRealChunk], best[kRealChunk];
  Place place[kRealChunk];
  for (int64_t c = 0; c < t.inner; c += kRealChunk) {
    const int64_t n = std::min(kRealChunk, t.inner - c);
    std::copy_n(Io::load(*t.vec, x + c, buffer, n), n, best);
    std::fill_n(place, n, Place{0});
    for (int64_t j = 1; j < t.axis; ++j) {
      const Value* row = Io::load(*t.vec, x + j * t.inner + c, buffer, n);
      const auto at = static_cast<Place>(j);
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) {
        const bool wins = beats<kIsMax, kLast>(row[i], best[i]);
        best[i] = wins ? row[i] : best[i];
        place[i] = wins ? at : place[i];
      }
    }
    std::copy_n(place, n, y + c);
  }
}

template <bool kIsMax, bool kLast, typename Io>
void find_all(const ArgTiling& t, const typename Io::Element* x, int64_t* y) {
  for (int64_t o = 0; o < t.outer; ++o, x += t.axis * t.inner, y += t.inner) {
    if (t.inner > 1)
      find_in_columns<kIsMax, kLast, Io>(t, x, y);
    else if constexpr (std::is_same_v<Io, Float32Io>)
      *y = find_in_float_row<kIsMax, kLast>(*t.vec, x, t.axis);
    else
      *y = find_in_row<kIsMax, kLast, Io>(*t.vec, x, t.axis);
  }
}

template <typename Io>
Status launch_arg(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const ArgTiling*>(task.tiling);
  const auto* x = task.input<typename Io::Element>(slots, 0);
  int64_t* y = task.output<int64_t>(slots, 0);
  if (t.is_max)
    t.select_last ? find_all<true, true, Io>(t, x, y) : find_all<true, false, Io>(t, x, y);
  else
    t.select_last ? find_all<false, true, Io>(t, x, y) : find_all<false, false, Io>(t, x, y);
  return Status::kOk;
}

LaunchFn find_arg(DType type) {
  switch (type) {
    case DType::kFloat32:
      return launch_arg<Float32Io>;
    case DType::kFloat64:
      return launch_arg<PlainIo<double>>;
    case DType::kFloat16:
      return launch_arg<Float16Io>;
    case DType::kBFloat16:
      return launch_arg<BFloat16Io>;
    case DType::kInt8:
      return launch_arg<PlainIo<int8_t>>;
    case DType::kInt16:
      return launch_arg<PlainIo<int16_t>>;
    case DType::kUInt16:
      return launch_arg<PlainIo<uint16_t>>;
    case DType::kInt32:
      return launch_arg<PlainIo<int32_t>>;
    case DType::kUInt32:
      return launch_arg<PlainIo<uint32_t>>;
    case DType::kInt64:
      return launch_arg<PlainIo<int64_t>>;
    case DType::kUInt64:
      return launch_arg<PlainIo<uint64_t>>;
    default:
      return launch_arg<PlainIo<uint8_t>>;
  }
}

template <bool kIsMax>
std::shared_ptr<const Tiling> tile_arg(const TilingContext& ctx) {
  const Shape& x = ctx.input(0);
  const int axis = checked_axis(ctx, ctx.attr("axis", 0), x.rank());
  if (count_of(ctx.output(0)) == 0) return create_empty_tiling();
  if (x[axis] == 0) fail_tiling(ctx, "no element on the axis of " + x.text() + "; check the input");
  const int64_t inner = x.span_of(axis + 1, x.rank());
  if (inner > 1 && x[axis] > std::numeric_limits<int32_t>::max())  // rows count in 64 bits
    fail_tiling(ctx, "the axis of " + x.text() + " has more than 2^31 - 1 elements; split it");
  auto t = create_tiling<ArgTiling>(find_arg(ctx.dtype(0)), inner > 1 ? "columns" : "rows");
  t->outer = x.span_of(0, axis);
  t->axis = x[axis];
  t->inner = inner;
  t->is_max = kIsMax;
  t->select_last = ctx.attr("select_last_index", 0) != 0;
  return t;
}

}  // namespace

void register_arg_reduce(KernelRegistry& registry) {
  registry.add("ArgMax", kNumbers, tile_arg<true>);
  registry.add("ArgMin", kNumbers, tile_arg<false>);
}

}  // namespace asc::cpu
