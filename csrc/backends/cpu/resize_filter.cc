// Resize by linear or cubic filters: one pass per axis that changes, over one plane at a time, in float32 or float64.
#include <algorithm>
#include <cstring>
#include <limits>

#include "backends/cpu/cast.h"
#include "backends/cpu/resize.h"

namespace asc::cpu {
namespace {

// The plane before and after a pass, as [outer, in or out, inner].
struct FilterPass {
  int64_t outer = 1, inner = 1;
  AxisTaps taps;
};

struct FilterTiling : Tiling {
  int64_t planes = 1, in_size = 1, out_size = 1;  // elements of one plane
  std::vector<FilterPass> passes;                 // at least one
  CastRow load = nullptr, store = nullptr;        // null where elements are computed with as they lie
  double low = 0, high = 0;                       // of integers: what the type holds
  size_t element_bytes = 0, value_bytes = 0;
  size_t load_offset = 0, buffer_offset[2] = {}, store_offset = 0;
  int64_t extents[kMaxRank];  // of the output plane, for the passes' outside positions
  float extrapolation = 0;
  size_t bytes() const override {
    size_t n = sizeof(FilterTiling);
    for (const FilterPass& p : passes)
      n +=
          sizeof(p) + p.taps.index.size() * (sizeof(int64_t) + sizeof(float)) + p.taps.outside.size() * sizeof(int64_t);
    return n;
  }
};

template <typename T>
void filter_row(const AxisTaps& t, const T* in, T* out) {
  const int64_t* index = t.index.data();
  const float* weight = t.weight.data();
  if (t.taps == 2) {
    for (int64_t i = 0; i < t.out; ++i)
      out[i] = T{weight[2 * i]} * in[index[2 * i]] + T{weight[2 * i + 1]} * in[index[2 * i + 1]];
    return;
  }
  for (int64_t i = 0; i < t.out; ++i, index += t.taps, weight += t.taps) {
    T sum = 0;
    for (int64_t k = 0; k < t.taps; ++k) sum += T{weight[k]} * in[index[k]];
    out[i] = sum;
  }
}

template <typename T>
void add_rows(const AxisTaps& t, int64_t i, const T* in, int64_t inner, T* out) {
  const int64_t* index = t.index.data() + i * t.taps;
  const float* weight = t.weight.data() + i * t.taps;
  for (int64_t k = 0; k < t.taps; k += 2) {
    const bool has_second = k + 1 < t.taps;
    const T first = weight[k], second = has_second ? weight[k + 1] : 0.0f;
    const T* a = in + index[k] * inner;
    const T* b = has_second ? in + index[k + 1] * inner : a;
    if (k == 0) {
#pragma omp simd
      for (int64_t j = 0; j < inner; ++j) out[j] = first * a[j] + second * b[j];
    } else {
#pragma omp simd
      for (int64_t j = 0; j < inner; ++j) out[j] += first * a[j] + second * b[j];
    }
  }
}

template <typename T>
void run_pass(const FilterPass& p, const T* in, T* out) {
  for (int64_t o = 0; o < p.outer; ++o, in += p.taps.in * p.inner) {
    if (p.inner == 1) {
      filter_row(p.taps, in, out);
      out += p.taps.out;
      continue;
    }
    for (int64_t i = 0; i < p.taps.out; ++i, out += p.inner) add_rows(p.taps, i, in, p.inner, out);
  }
}

// After all passes the plane has its final extents, so that `outer` of a pass no longer counts; `inner` is recomputed.
template <typename T>
void extrapolate(const FilterTiling& t, T* plane) {
  for (const FilterPass& p : t.passes) {
    if (p.taps.outside.empty()) continue;
    const int64_t inner = t.extents[&p - t.passes.data()], block = inner * p.taps.out;
    for (int64_t start = 0; start < t.out_size; start += block)
      for (const int64_t i : p.taps.outside) std::fill_n(plane + start + i * inner, inner, T{t.extrapolation});
  }
}

template <typename T>
void resize_plane(const FilterTiling& t, const T* in, T* const* buffers, T* out) {
  for (size_t i = 0; i < t.passes.size(); ++i) {
    T* to = i + 1 == t.passes.size() ? out : buffers[i % 2];
    run_pass(t.passes[i], in, to);
    in = to;
  }
  extrapolate(t, out);
}

template <typename T>
Status launch_filter(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const FilterTiling*>(task.tiling);
  const char* x = task.input<char>(slots, 0);
  char *y = task.output<char>(slots, 0), *workspace = static_cast<char*>(task.workspace(slots));
  const auto at = [workspace](size_t offset) { return reinterpret_cast<T*>(workspace + offset); };
  T* const buffers[] = {at(t.buffer_offset[0]), at(t.buffer_offset[1])};
  const int64_t in_bytes = t.in_size * static_cast<int64_t>(t.element_bytes);
  const int64_t out_bytes = t.out_size * static_cast<int64_t>(t.element_bytes);
  for (int64_t i = 0; i < t.planes; ++i, x += in_bytes, y += out_bytes) {
    if (!t.load) {
      resize_plane(t, reinterpret_cast<const T*>(x), buffers, reinterpret_cast<T*>(y));
      continue;
    }
    T *from = at(t.load_offset), *to = at(t.store_offset);
    t.load(x, from, static_cast<size_t>(t.in_size));
    resize_plane(t, from, buffers, to);
    if (t.low < t.high)
      for (int64_t j = 0; j < t.out_size; ++j) to[j] = std::clamp(to[j], T(t.low), T(t.high));
    t.store(to, y, static_cast<size_t>(t.out_size));
  }
  return Status::kOk;
}

template <typename T>
void set_limits(FilterTiling* t) {
  t->low = static_cast<double>(std::numeric_limits<T>::min());
  t->high = static_cast<double>(std::numeric_limits<T>::max());
}

// Integers wider than 16 bits are computed in float64, halves and the narrow integers in float32.
void set_types(const TilingContext& ctx, FilterTiling* t) {
  const DType type = ctx.dtype(0);
  if (type == DType::kInt8) set_limits<int8_t>(t);
  if (type == DType::kUInt8) set_limits<uint8_t>(t);
  if (type == DType::kInt16) set_limits<int16_t>(t);
  if (type == DType::kUInt16) set_limits<uint16_t>(t);
  if (type == DType::kInt32) set_limits<int32_t>(t);
  if (type == DType::kUInt32) set_limits<uint32_t>(t);
  if (type == DType::kBool || size_of(type) == 8) {
    if (type != DType::kFloat64)
      ctx.unsupported(std::string("linear and cubic do not work on ") + name_of(type) + "; insert a Cast to float32");
  }
  const bool is_wide = type == DType::kFloat64 || type == DType::kInt32 || type == DType::kUInt32;
  const DType value = is_wide ? DType::kFloat64 : DType::kFloat32;
  t->launch = is_wide ? launch_filter<double> : launch_filter<float>;
  t->element_bytes = size_of(type);
  t->value_bytes = size_of(value);
  if (type == value) return;
  t->load = cast_row(type, value);
  t->store = cast_row(value, type);
}

// Shrinking axes first, then those that lie innermost: the least work for what follows.
std::vector<int> order_of(const ResizeRules& rules, const ResizeGeometry& g, int first) {
  std::vector<int> order;
  for (int i = g.rank - 1; i >= first; --i)
    if (!is_identity(rules, g.axes[i])) order.push_back(i);
  const auto growth = [&](int i) { return static_cast<double>(g.axes[i].out) / static_cast<double>(g.axes[i].in); };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return growth(a) < growth(b); });
  if (order.empty()) order.push_back(g.rank - 1);
  return order;
}

size_t take(FilterTiling* t, int64_t elements) {
  const size_t offset = t->workspace_bytes;
  t->workspace_bytes += round_up(static_cast<size_t>(elements) * t->value_bytes);
  return offset;
}

}  // namespace

std::shared_ptr<const Tiling> tile_filter_resize(const TilingContext& ctx, const ResizeRules& rules,
                                                 const ResizeGeometry& g) {
  if (g.rank == 0) return tile_nearest_resize(ctx, rules, g);
  auto t = std::make_shared<FilterTiling>();
  t->implementation = "passes";
  t->extrapolation = rules.extrapolation;
  set_types(ctx, t.get());
  int first = 0;
  while (first + 1 < g.rank && is_identity(rules, g.axes[first])) t->planes *= g.axes[first++].in;
  Shape plane;
  for (int i = first; i < g.rank; ++i) {
    plane.push_back(g.axes[i].in);
    t->in_size *= g.axes[i].in;
    t->out_size *= g.axes[i].out;
  }
  int64_t largest[2] = {0, 0};
  for (const int axis : order_of(rules, g, first)) {
    FilterPass p;
    p.outer = plane.span_of(0, axis - first);
    p.inner = plane.span_of(axis - first + 1, plane.rank());
    p.taps = make_axis_taps(rules, g.axes[axis]);
    plane[axis - first] = g.axes[axis].out;
    int64_t& size = largest[t->passes.size() % 2];
    size = std::max(size, count_of(plane));
    t->extents[t->passes.size()] = ctx.output(0).span_of(axis + 1, g.rank);
    t->passes.push_back(std::move(p));
  }
  if (t->load) t->load_offset = take(t.get(), t->in_size), t->store_offset = take(t.get(), t->out_size);
  const size_t passes = t->passes.size();
  for (size_t i = 0; i < 2; ++i)
    if (passes > i + 1) t->buffer_offset[i] = take(t.get(), largest[i]);
  return t;
}

}  // namespace asc::cpu
