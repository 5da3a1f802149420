// Reductions of float64, integers and bool. Integers accumulate modulo 2^64, so that only the result can wrap.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "backends/cpu/reduce.h"

namespace asc::cpu {
namespace {

constexpr int64_t kColumns = 256;
constexpr int kLanes = 8;  // independent sums of a row

template <typename T>
constexpr T lowest() {
  return std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
}

template <typename T>
constexpr T highest() {
  return std::is_floating_point_v<T> ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
}

constexpr bool is_extremum(ReduceKind kind) { return kind == ReduceKind::kMax || kind == ReduceKind::kMin; }

// One reduction of one element type: the accumulator, a step, the merge of two accumulators, the result.
template <ReduceKind kKind, typename T>
struct Reducer {
  static constexpr bool kIsReal = std::is_floating_point_v<T>;
  using Sum = std::conditional_t<kIsReal, double, uint64_t>;
  using Value = std::conditional_t<is_extremum(kKind), T, Sum>;
  using Signed = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;

  static Value identity() {
    if constexpr (kKind == ReduceKind::kMax)
      return lowest<T>();
    else if constexpr (kKind == ReduceKind::kMin)
      return highest<T>();
    else
      return kKind == ReduceKind::kProd ? 1 : 0;
  }
  static Value step(Value acc, T x) {
    if constexpr (is_extremum(kKind)) {
      return merge(acc, x);
    } else {
      const Sum wide = static_cast<Sum>(x);
      if constexpr (kKind == ReduceKind::kProd)
        return acc * wide;
      else if constexpr (kKind == ReduceKind::kL1)
        return acc + (x < T(0) ? -wide : wide);
      else if constexpr (kKind == ReduceKind::kL2 || kKind == ReduceKind::kSumSquare)
        return acc + wide * wide;
      else
        return acc + wide;
    }
  }
  static Value merge(Value a, Value b) {
    if constexpr (kKind == ReduceKind::kMax)
      return (a != a) | (a > b) ? a : b;
    else if constexpr (kKind == ReduceKind::kMin)
      return (a != a) | (a < b) ? a : b;
    else if constexpr (kKind == ReduceKind::kProd)
      return a * b;
    else
      return a + b;
  }
  static T finish(Value acc, int64_t count) {
    if constexpr (is_extremum(kKind))
      return acc;
    else if constexpr (kKind == ReduceKind::kMean)
      return mean(acc, count);
    else if constexpr (kKind == ReduceKind::kL2)
      return to_element(std::sqrt(as_double(acc)));
    else if constexpr (kKind == ReduceKind::kLogSum)
      return to_element(std::log(as_double(acc)));
    else
      return static_cast<T>(acc);
  }
  static double as_double(Value acc) {
    if constexpr (kIsReal)
      return acc;
    else
      return static_cast<double>(static_cast<Signed>(acc));
  }
  static T mean(Value acc, int64_t count) {
    if constexpr (kIsReal)
      return acc / static_cast<double>(count);
    else
      return count == 0 ? T(0) : static_cast<T>(static_cast<Signed>(acc) / static_cast<Signed>(count));
  }
  // Saturates: a conversion out of range would be undefined.
  static T to_element(double x) {
    if constexpr (kIsReal) return x;
    if (!(x > static_cast<double>(std::numeric_limits<T>::lowest()))) return std::numeric_limits<T>::lowest();
    if (x >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(x);
  }

  static Value reduce_row(const T* x, int64_t n) {
    Value lanes[kLanes];
    for (Value& lane : lanes) lane = identity();
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
      for (int k = 0; k < kLanes; ++k) lanes[k] = step(lanes[k], x[i + k]);
    for (; i < n; ++i) lanes[0] = step(lanes[0], x[i]);
    for (int k = 1; k < kLanes; ++k) lanes[0] = merge(lanes[0], lanes[k]);
    return lanes[0];
  }
};

template <ReduceKind kKind, typename T>
void reduce_rows(const ReduceTiling& t, const char* in, char* out) {
  using R = Reducer<kKind, T>;
  char* none = nullptr;
  walk(t.keep, t.keep_rank, in, out, [&](const char* from, char* to) {
    auto acc = R::identity();
    walk(t.reduce, t.reduce_rank, from, none,
         [&](const char* row, char*) { acc = R::merge(acc, R::reduce_row(reinterpret_cast<const T*>(row), t.row)); });
    *reinterpret_cast<T*>(to) = R::finish(acc, t.count);
  });
}

template <ReduceKind kKind, typename T>
void reduce_columns(const ReduceTiling& t, const char* in, char* out) {
  using R = Reducer<kKind, T>;
  char* none = nullptr;
  typename R::Value acc[kColumns];
  walk(t.keep, t.keep_rank, in, out, [&](const char* from, char* to) {
    for (int64_t i = 0; i < t.row; i += kColumns) {
      const int64_t n = std::min(kColumns, t.row - i);
      for (int64_t c = 0; c < n; ++c) acc[c] = R::identity();
      walk(t.reduce, t.reduce_rank, from, none, [&](const char* row, char*) {
        const T* x = reinterpret_cast<const T*>(row) + i;
        int64_t c = 0;
        for (; c + kLanes <= n; c += kLanes)
          for (int k = 0; k < kLanes; ++k) acc[c + k] = R::step(acc[c + k], x[c + k]);
        for (; c < n; ++c) acc[c] = R::step(acc[c], x[c]);
      });
      T* y = reinterpret_cast<T*>(to) + i;
      for (int64_t c = 0; c < n; ++c) y[c] = R::finish(acc[c], t.count);
    }
  });
}

template <ReduceKind kKind, typename T>
Status launch_exact(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const ReduceTiling*>(task.tiling);
  if (t.row_is_reduced)
    reduce_rows<kKind, T>(t, task.input<char>(slots, 0), task.output<char>(slots, 0));
  else
    reduce_columns<kKind, T>(t, task.input<char>(slots, 0), task.output<char>(slots, 0));
  return Status::kOk;
}

// log(sum(exp(x))) in float64, shifted by the maximum; elements are visited one by one.
template <typename T>
Status launch_log_sum_exp(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const ReduceTiling*>(task.tiling);
  using Max = Reducer<ReduceKind::kMax, double>;
  const int64_t columns = t.row_is_reduced ? 1 : t.row, row = t.row_is_reduced ? t.row : 1;
  char* none = nullptr;
  walk(t.keep, t.keep_rank, task.input<char>(slots, 0), task.output<char>(slots, 0), [&](const char* in, char* out) {
    for (int64_t c = 0; c < columns; ++c) {
      const auto for_each = [&](auto use) {
        walk(t.reduce, t.reduce_rank, in, none, [&](const char* p, char*) {
          for (int64_t i = 0; i < row; ++i) use(static_cast<double>(reinterpret_cast<const T*>(p)[c + i]));
        });
      };
      double maximum = Max::identity(), sum = 0;
      for_each([&](double x) { maximum = Max::merge(maximum, x); });
      const double shift = std::isfinite(maximum) ? maximum : 0;
      for_each([&](double x) { sum += std::exp(x - shift); });
      reinterpret_cast<T*>(out)[c] = Reducer<ReduceKind::kLogSum, T>::to_element(std::log(sum) + shift);
    }
  });
  return Status::kOk;
}

template <typename T>
LaunchFn find_arithmetic(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::kSum:
      return launch_exact<ReduceKind::kSum, T>;
    case ReduceKind::kMean:
      return launch_exact<ReduceKind::kMean, T>;
    case ReduceKind::kMax:
      return launch_exact<ReduceKind::kMax, T>;
    case ReduceKind::kMin:
      return launch_exact<ReduceKind::kMin, T>;
    case ReduceKind::kProd:
      return launch_exact<ReduceKind::kProd, T>;
    case ReduceKind::kL1:
      return launch_exact<ReduceKind::kL1, T>;
    case ReduceKind::kL2:
      return launch_exact<ReduceKind::kL2, T>;
    case ReduceKind::kLogSum:
      return launch_exact<ReduceKind::kLogSum, T>;
    case ReduceKind::kLogSumExp:
      return launch_log_sum_exp<T>;
    case ReduceKind::kSumSquare:
      return launch_exact<ReduceKind::kSumSquare, T>;
  }
  return nullptr;
}

template <typename T>
LaunchFn find_extremum(ReduceKind kind) {
  if (kind == ReduceKind::kMax) return launch_exact<ReduceKind::kMax, T>;
  return kind == ReduceKind::kMin ? launch_exact<ReduceKind::kMin, T> : nullptr;
}

}  // namespace

LaunchFn find_exact_reduce(ReduceKind kind, DType type) {
  switch (type) {
    case DType::kFloat64:
      return find_arithmetic<double>(kind);
    case DType::kInt32:
      return find_arithmetic<int32_t>(kind);
    case DType::kUInt32:
      return find_arithmetic<uint32_t>(kind);
    case DType::kInt64:
      return find_arithmetic<int64_t>(kind);
    case DType::kUInt64:
      return find_arithmetic<uint64_t>(kind);
    case DType::kInt8:
      return find_extremum<int8_t>(kind);
    case DType::kUInt8:
      return find_extremum<uint8_t>(kind);
    case DType::kInt16:
      return find_extremum<int16_t>(kind);
    case DType::kUInt16:
      return find_extremum<uint16_t>(kind);
    case DType::kBool:
      return find_extremum<bool>(kind);
    default:
      return nullptr;
  }
}

}  // namespace asc::cpu
