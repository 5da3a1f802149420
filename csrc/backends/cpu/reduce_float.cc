// Reductions of float32, float16 and bfloat16, all accumulated in float32 by the vector primitives.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cpu/real_io.h"
#include "backends/cpu/reduce.h"
#include "backends/cpu/transpose_4x4.h"

namespace asc::cpu {
namespace {

constexpr int64_t kRowBlock = 1024;  // rows summed into one accumulator, so that rounding errors grow slowly
constexpr float kInfinity = std::numeric_limits<float>::infinity();

float identity_of(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kMax:
      return -kInfinity;
    case ReduceKind::kMin:
      return kInfinity;
    case ReduceKind::kProd:
      return 1.0f;
    default:
      return 0.0f;
  }
}

float reduce_row(const VecTable& v, ReduceKind kind, const float* x, size_t n) {
  switch (kind) {
    case ReduceKind::kMax:
      return v.max_of(x, n);
    case ReduceKind::kMin:
      return v.min_of(x, n);
    case ReduceKind::kProd:
      return v.prod(x, n);
    case ReduceKind::kL1:
      return v.sum_abs(x, n);
    case ReduceKind::kL2:
    case ReduceKind::kSumSquare:
      return v.sum_squares(x, n);
    default:
      return v.sum(x, n);
  }
}

// NaN wins, as in NumPy.
float combine(ReduceKind kind, float a, float b) {
  switch (kind) {
    case ReduceKind::kMax:
      return a != a || a > b ? a : b;
    case ReduceKind::kMin:
      return a != a || a < b ? a : b;
    case ReduceKind::kProd:
      return a * b;
    default:
      return a + b;
  }
}

float finish(ReduceKind kind, float x, int64_t count) {
  switch (kind) {
    case ReduceKind::kMean:
      return x / static_cast<float>(count);
    case ReduceKind::kL2:
      return std::sqrt(x);
    case ReduceKind::kLogSum:
      return std::log(x);
    default:
      return x;
  }
}

// Adds the row to the accumulators, element by element. `buffer` may be the row itself.
void accumulate(const VecTable& v, ReduceKind kind, const float* x, float* sums, float* buffer, size_t n) {
  switch (kind) {
    case ReduceKind::kMax:
      return v.max.vv(sums, x, sums, n);
    case ReduceKind::kMin:
      return v.min.vv(sums, x, sums, n);
    case ReduceKind::kProd:
      return v.mul.vv(sums, x, sums, n);
    case ReduceKind::kL1:
      v.abs(x, buffer, n);
      return v.add.vv(sums, buffer, sums, n);
    case ReduceKind::kL2:
    case ReduceKind::kSumSquare:
      return v.mul_add(x, x, sums, sums, n);
    default:
      return v.add.vv(sums, x, sums, n);
  }
}

// into = into (reduction) from, for rows of accumulators.
void merge_rows(const VecTable& v, ReduceKind kind, const float* from, float* into, size_t n) {
  switch (kind) {
    case ReduceKind::kMax:
      return v.max.vv(into, from, into, n);
    case ReduceKind::kMin:
      return v.min.vv(into, from, into, n);
    case ReduceKind::kProd:
      return v.mul.vv(into, from, into, n);
    default:
      return v.add.vv(into, from, into, n);
  }
}

void finish_row(const VecTable& v, ReduceKind kind, float* x, size_t n, int64_t count) {
  const float divisor = static_cast<float>(count);
  if (kind == ReduceKind::kMean) v.div.vs(x, &divisor, x, n);
  if (kind == ReduceKind::kL2) v.sqrt(x, x, n);
  if (kind == ReduceKind::kLogSum) v.log(x, x, n);
}

// Infinite maxima must not be subtracted: inf - inf is NaN.
float safe_shift(float maximum) { return std::isfinite(maximum) ? maximum : 0.0f; }

// Reduced rows: calls use(row, n) for each piece of every row that belongs to one output.
template <typename Io, typename Use>
void for_each_row(const ReduceTiling& t, const VecTable& v, const char* in, Use use) {
  float buffer[kRealChunk];
  char* none = nullptr;
  const int64_t chunk = Io::kConverts ? kRealChunk : std::max<int64_t>(t.row, 1);
  walk(t.reduce, t.reduce_rank, in, none, [&](const char* p, char*) {
    const auto* row = reinterpret_cast<const typename Io::Element*>(p);
    for (int64_t i = 0; i < t.row; i += chunk) {
      const int64_t n = std::min(chunk, t.row - i);
      use(Io::load(v, row + i, buffer, n), static_cast<size_t>(n));
    }
  });
}

template <typename Io>
float reduce_position(const ReduceTiling& t, const VecTable& v, const char* in) {
  if (t.kind != ReduceKind::kLogSumExp) {
    float result = identity_of(t.kind);
    for_each_row<Io>(t, v, in,
                     [&](const float* x, size_t n) { result = combine(t.kind, result, reduce_row(v, t.kind, x, n)); });
    return finish(t.kind, result, t.count);
  }
  float maximum = -kInfinity, sum = 0.0f;
  for_each_row<Io>(t, v, in,
                   [&](const float* x, size_t n) { maximum = combine(ReduceKind::kMax, maximum, v.max_of(x, n)); });
  const float shift = safe_shift(maximum);
  for_each_row<Io>(t, v, in, [&](const float* x, size_t n) { sum += v.sum_exp(x, n, shift); });
  return std::log(sum) + shift;
}

// Kept rows: combines `n` columns of all rows that belong to these outputs.
template <typename Io>
void reduce_columns(const ReduceTiling& t, const VecTable& v, const char* in, float* sums, size_t n) {
  float buffer[kRealChunk], totals[kRealChunk];  // totals: of earlier blocks, or the maxima
  char* none = nullptr;
  const auto for_each = [&](auto use) {
    walk(t.reduce, t.reduce_rank, in, none, [&](const char* p, char*) {
      use(Io::load(v, reinterpret_cast<const typename Io::Element*>(p), buffer, static_cast<int64_t>(n)));
    });
  };
  if (t.kind != ReduceKind::kLogSumExp) {
    std::fill_n(sums, n, identity_of(t.kind));
    int64_t rows = 0;
    for_each([&](const float* x) {
      if (rows > 0 && rows % kRowBlock == 0) {
        if (rows == kRowBlock) std::fill_n(totals, n, identity_of(t.kind));
        merge_rows(v, t.kind, sums, totals, n);
        std::fill_n(sums, n, identity_of(t.kind));
      }
      accumulate(v, t.kind, x, sums, buffer, n);
      ++rows;
    });
    if (rows > kRowBlock) merge_rows(v, t.kind, totals, sums, n);
    return finish_row(v, t.kind, sums, n, t.count);
  }
  float* maxima = totals;
  std::fill_n(maxima, n, -kInfinity);
  for_each([&](const float* x) { v.max.vv(maxima, x, maxima, n); });
  for (size_t i = 0; i < n; ++i) maxima[i] = safe_shift(maxima[i]);
  std::fill_n(sums, n, 0.0f);
  for_each([&](const float* x) {
    v.sub.vv(x, maxima, buffer, n);
    v.exp(buffer, buffer, n);
    v.add.vv(sums, buffer, sums, n);
  });
  v.log(sums, sums, n);
  v.add.vv(sums, maxima, sums, n);
}

template <typename Io>
Status launch_rows(const Task& task, void* const* slots, Worker&) {
  using Element = typename Io::Element;
  const auto& t = *static_cast<const ReduceTiling*>(task.tiling);
  const VecTable& v = *t.vec;
  walk(t.keep, t.keep_rank, task.input<char>(slots, 0), task.output<char>(slots, 0), [&](const char* in, char* out) {
    auto* y = reinterpret_cast<Element*>(out);
    float buffer;
    float* target = Io::target(y, &buffer);
    *target = reduce_position<Io>(t, v, in);
    Io::store(v, target, y, 1);
  });
  return Status::kOk;
}

template <typename Io>
Status launch_columns(const Task& task, void* const* slots, Worker&) {
  using Element = typename Io::Element;
  const auto& t = *static_cast<const ReduceTiling*>(task.tiling);
  const VecTable& v = *t.vec;
  float buffer[kRealChunk];
  walk(t.keep, t.keep_rank, task.input<char>(slots, 0), task.output<char>(slots, 0), [&](const char* in, char* out) {
    for (int64_t i = 0; i < t.row; i += kRealChunk) {
      const int64_t n = std::min(kRealChunk, t.row - i);
      auto* y = reinterpret_cast<Element*>(out) + i;
      float* target = Io::target(y, buffer);
      reduce_columns<Io>(t, v, in + i * static_cast<int64_t>(sizeof(Element)), target, static_cast<size_t>(n));
      Io::store(v, target, y, n);
    }
  });
  return Status::kOk;
}

// to[k][i] = from[i][k], kRow numbers to a row of `from` and n to one of `to`.
template <int kRow>
void turn_rows(const float* from, float* to, int64_t n) {
  int64_t i = 0;
  if constexpr (kRow == 2) {
    for (; i + 4 <= n; i += 4) {
      typedef float Four __attribute__((vector_size(16)));
      typedef int32_t Places __attribute__((vector_size(16)));
      Four low, high;
      std::memcpy(&low, from + 2 * i, sizeof low);
      std::memcpy(&high, from + 2 * i + 4, sizeof high);
      const Four first = __builtin_shuffle(low, high, Places{0, 2, 4, 6});
      const Four second = __builtin_shuffle(low, high, Places{1, 3, 5, 7});
      std::memcpy(to + i, &first, sizeof first);
      std::memcpy(to + n + i, &second, sizeof second);
    }
  }
  for (; i < n; ++i)
    for (int k = 0; k < kRow; ++k) to[k * n + i] = from[i * kRow + k];
}

void turn_rows(const float* from, float* to, int64_t row, int64_t n) {
  switch (row) {
    case 2:
      return turn_rows<2>(from, to, n);
    case 3:
      return turn_rows<3>(from, to, n);
    case 4:
      return turn_rows<4>(from, to, n);
    default:
      return transpose_rows(from, row, n, row, to, n);
  }
}

constexpr int64_t kTinyRow = 8, kShortRow = 64;  // longer ones are as quick one by one, as are few of the short ones

bool has_short_rows(const ReduceTiling& t) {
  return t.row_is_reduced && t.reduce_rank == 0 && t.keep_rank == 1 && t.row > 1 &&
         (t.row <= kTinyRow || (t.row <= kShortRow && t.keep[0].count >= t.row)) && t.kind != ReduceKind::kLogSumExp;
}

// Rows of a few numbers, one behind the other: they are turned into columns.
template <typename Io>
Status launch_short_rows(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const ReduceTiling*>(task.tiling);
  const VecTable& v = *t.vec;
  constexpr int64_t kNumbers = 4 * kRealChunk, kVector = 16;
  float in_buffer[kNumbers], columns[kNumbers], out_buffer[kNumbers / 2];
  const auto* x = task.input<typename Io::Element>(slots, 0);
  auto* y = task.output<typename Io::Element>(slots, 0);
  const int64_t chunk = kNumbers / t.row & ~(kVector - 1), count = t.keep[0].count;
  for (int64_t begin = 0; begin < count; begin += chunk) {
    const int64_t n = std::min(chunk, count - begin);
    turn_rows(Io::load(v, x + begin * t.row, in_buffer, n * t.row), columns, t.row, n);
    float* target = Io::target(y + begin, out_buffer);
    std::fill_n(target, n, identity_of(t.kind));
    for (int64_t k = 0; k < t.row; ++k)
      accumulate(v, t.kind, columns + k * n, target, columns + k * n, static_cast<size_t>(n));
    finish_row(v, t.kind, target, static_cast<size_t>(n), t.count);
    Io::store(v, target, y + begin, n);
  }
  return Status::kOk;
}

template <typename Io>
Status launch_reduce(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const ReduceTiling*>(task.tiling);
  if (has_short_rows(t)) return launch_short_rows<Io>(task, slots, worker);
  return t.row_is_reduced ? launch_rows<Io>(task, slots, worker) : launch_columns<Io>(task, slots, worker);
}

}  // namespace

LaunchFn find_float_reduce(DType type) {
  switch (type) {
    case DType::kFloat32:
      return launch_reduce<Float32Io>;
    case DType::kFloat16:
      return launch_reduce<Float16Io>;
    case DType::kBFloat16:
      return launch_reduce<BFloat16Io>;
    default:
      return nullptr;
  }
}

}  // namespace asc::cpu
