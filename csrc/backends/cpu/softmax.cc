// Softmax and LogSoftmax over [outer, axis, inner].
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/real_io.h"
#include "backends/cpu/reduce.h"

namespace asc::cpu {
namespace {

struct SoftmaxTiling : TilingOf<SoftmaxTiling> {
  const VecTable* vec = &vec_table();
  VecTable::Rows rows = nullptr;
  int64_t outer = 1, axis = 1, inner = 1;
  bool is_log = false;
};

Status launch_float_rows(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const SoftmaxTiling*>(task.tiling);
  t.rows(task.input<float>(slots, 0), task.output<float>(slots, 0), static_cast<size_t>(t.outer),
         static_cast<size_t>(t.axis));
  return Status::kOk;
}

template <typename Io>
Status launch_half_rows(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const SoftmaxTiling*>(task.tiling);
  const uint16_t* x = task.input<uint16_t>(slots, 0);
  uint16_t* y = task.output<uint16_t>(slots, 0);
  auto* row = static_cast<float*>(worker.scratch(t.axis * sizeof(float)));
  for (int64_t o = 0; o < t.outer; ++o, x += t.axis, y += t.axis) {
    Io::load(*t.vec, x, row, t.axis);
    t.rows(row, row, 1, static_cast<size_t>(t.axis));
    Io::store(*t.vec, row, y, t.axis);
  }
  return Status::kOk;
}

// `n` columns side by side, each a softmax of its own.
template <typename Io>
void softmax_columns(const SoftmaxTiling& t, const typename Io::Element* x, typename Io::Element* y, int64_t n) {
  const VecTable& v = *t.vec;
  float maxima[kRealChunk], sums[kRealChunk], in_buffer[kRealChunk], buffer[kRealChunk];
  std::fill_n(maxima, n, -std::numeric_limits<float>::infinity());
  for (int64_t j = 0; j < t.axis; ++j) v.max.vv(maxima, Io::load(v, x + j * t.inner, in_buffer, n), maxima, n);
  std::fill_n(sums, n, 0.0f);
  const auto shifted = [&](int64_t j, float* to) {
    v.sub.vv(Io::load(v, x + j * t.inner, in_buffer, n), maxima, to, n);
  };
  for (int64_t j = 0; j < t.axis; ++j) {
    shifted(j, buffer);
    v.exp(buffer, buffer, n);
    v.add.vv(sums, buffer, sums, n);
  }
  if (t.is_log) v.log(sums, sums, n);
  for (int64_t j = 0; j < t.axis; ++j) {
    auto* to = y + j * t.inner;
    float* result = Io::target(to, buffer);
    shifted(j, result);
    if (t.is_log) {
      v.sub.vv(result, sums, result, n);
    } else {
      v.exp(result, result, n);
      v.div.vv(result, sums, result, n);
    }
    Io::store(v, result, to, n);
  }
}

template <typename Io>
Status launch_columns(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const SoftmaxTiling*>(task.tiling);
  const auto* x = task.input<typename Io::Element>(slots, 0);
  auto* y = task.output<typename Io::Element>(slots, 0);
  for (int64_t o = 0; o < t.outer; ++o, x += t.axis * t.inner, y += t.axis * t.inner)
    for (int64_t c = 0; c < t.inner; c += kRealChunk)
      softmax_columns<Io>(t, x + c, y + c, std::min(kRealChunk, t.inner - c));
  return Status::kOk;
}

// Long and few columns: as rows, in workspace.
Status launch_few_columns(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const SoftmaxTiling*>(task.tiling);
  const auto* x = task.input<float>(slots, 0);
  auto* y = task.output<float>(slots, 0);
  auto* rows = static_cast<float*>(task.workspace(slots));
  for (int64_t o = 0; o < t.outer; ++o, x += t.axis * t.inner, y += t.axis * t.inner) {
    for (int64_t j = 0; j < t.axis; ++j)
      for (int64_t c = 0; c < t.inner; ++c) rows[c * t.axis + j] = x[j * t.inner + c];
    t.rows(rows, rows, static_cast<size_t>(t.inner), static_cast<size_t>(t.axis));
    for (int64_t j = 0; j < t.axis; ++j)
      for (int64_t c = 0; c < t.inner; ++c) y[j * t.inner + c] = rows[c * t.axis + j];
  }
  return Status::kOk;
}

void softmax_lane(const double* x, double* y, int64_t n, int64_t stride, bool is_log) {
  double maximum = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t j = 0; j < n; ++j) {
    const double value = x[j * stride];
    maximum = maximum != maximum || maximum > value ? maximum : value;
  }
  for (int64_t j = 0; j < n; ++j) sum += std::exp(x[j * stride] - maximum);
  const double log_sum = std::log(sum);
  for (int64_t j = 0; j < n; ++j) {
    const double shifted = x[j * stride] - maximum;
    y[j * stride] = is_log ? shifted - log_sum : std::exp(shifted) / sum;
  }
}

Status launch_double(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const SoftmaxTiling*>(task.tiling);
  const double* x = task.input<double>(slots, 0);
  double* y = task.output<double>(slots, 0);
  for (int64_t o = 0; o < t.outer; ++o, x += t.axis * t.inner, y += t.axis * t.inner)
    for (int64_t c = 0; c < t.inner; ++c) softmax_lane(x + c, y + c, t.axis, t.inner, t.is_log);
  return Status::kOk;
}

// Measured: with fewer columns vectors stay empty, and with short ones rows do.
LaunchFn find_softmax(DType type, int64_t axis, int64_t inner) {
  constexpr int64_t kFewColumns = 24, kLongColumn = 16;
  const bool is_row = inner == 1, turns = inner <= kFewColumns && axis >= kLongColumn;
  switch (type) {
    case DType::kFloat32:
      return is_row ? launch_float_rows : turns ? launch_few_columns : launch_columns<Float32Io>;
    case DType::kFloat16:
      return is_row ? launch_half_rows<Float16Io> : launch_columns<Float16Io>;
    case DType::kBFloat16:
      return is_row ? launch_half_rows<BFloat16Io> : launch_columns<BFloat16Io>;
    default:
      return launch_double;
  }
}

template <bool kIsLog>
std::shared_ptr<const Tiling> tile_softmax(const TilingContext& ctx) {
  const Shape& x = ctx.input(0);
  const int axis = checked_axis(ctx, ctx.attr("axis", -1), x.rank());
  if (count_of(x) == 0) return create_empty_tiling();
  const int64_t inner = x.span_of(axis + 1, x.rank());
  const DType type = ctx.dtype(0);
  auto t =
      create_tiling<SoftmaxTiling>(find_softmax(type, x[axis], inner), type == DType::kFloat64 ? "scalar" : "vector");
  t->rows = kIsLog ? t->vec->log_softmax_rows : t->vec->softmax_rows;
  t->outer = x.span_of(0, axis);
  t->axis = x[axis];
  t->inner = inner;
  t->is_log = kIsLog;
  if (t->launch == launch_few_columns) t->workspace_bytes = static_cast<size_t>(t->axis * inner) * sizeof(float);
  return t;
}

}  // namespace

void register_softmax(KernelRegistry& registry) {
  registry.add("Softmax", kFloats, tile_softmax<false>);
  registry.add("LogSoftmax", kFloats, tile_softmax<true>);
}

}  // namespace asc::cpu
