// MaxPool and AveragePool over plain tensors. Every output line is folded in two steps: the input lines of the window
// into one padded line, then the kernel positions along the width. Strided positions are first split by phase, so that
// every step works on contiguous elements.
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/cpu/half_adaptor.h"
#include "backends/cpu/nn.h"
#include "backends/cpu/plain_window.h"
#include "backends/cpu/vec_table.h"

namespace asc::cpu {
namespace {

struct PoolTiling : Tiling {
  PlainWindow window;
  int64_t planes = 0;              // batch * channels
  int64_t phase_size = 0;          // elements of one phase of the padded line
  std::vector<int64_t> counts[3];  // AveragePool: what each output of an axis averages over
  size_t bytes() const override {
    return sizeof(PoolTiling) + (counts[0].size() + counts[1].size() + counts[2].size()) * sizeof(int64_t);
  }
};

// y = fold(a, b), element by element; y may be a.
template <typename T>
struct MaxFold {
  static constexpr bool kIsAverage = false;
  static T identity() {
    return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                : std::numeric_limits<T>::lowest();
  }
  // NaN wins.
  static void fold(const T* a, const T* b, T* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = b[i] > a[i] || b[i] != b[i] ? b[i] : a[i];
  }
};

template <>
void MaxFold<float>::fold(const float* a, const float* b, float* y, int64_t n) {
  vec_table().max.vv(a, b, y, static_cast<size_t>(n));
}

template <typename T>
struct SumFold {
  static constexpr bool kIsAverage = true;
  static T identity() { return 0; }
  static void fold(const T* a, const T* b, T* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
  }
  static void divide(const T* divisors, T* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] /= divisors[i];
  }
};

template <>
void SumFold<float>::fold(const float* a, const float* b, float* y, int64_t n) {
  vec_table().add.vv(a, b, y, static_cast<size_t>(n));
}
template <>
void SumFold<float>::divide(const float* divisors, float* y, int64_t n) {
  vec_table().div.vv(y, divisors, y, static_cast<size_t>(n));
}

// Folds any number of lines into one; the first two meet without a copy.
template <typename T, typename Fold>
class LineFold {
 public:
  LineFold(T* y, int64_t n) : y_(y), n_(n) {}
  void add(const T* line) {
    if (++count_ == 1)
      first_ = line;
    else
      Fold::fold(count_ == 2 ? first_ : y_, line, y_, n_);
  }
  void finish() {
    if (count_ == 0) std::fill(y_, y_ + n_, Fold::identity());
    if (count_ == 1) std::copy(first_, first_ + n_, y_);
  }

 private:
  T* y_;
  int64_t n_;
  const T* first_ = nullptr;
  int64_t count_ = 0;
};

// Even and odd elements of 2n.
template <typename T>
void split_pairs(const T* x, T* even, T* odd, int64_t n) {
  int64_t i = 0;
  if constexpr (sizeof(T) == 4) {
    typedef float Quad __attribute__((vector_size(16)));
    for (; i + 4 <= n; i += 4) {
      Quad a, b;
      std::memcpy(&a, x + 2 * i, sizeof a);
      std::memcpy(&b, x + 2 * i + 4, sizeof b);
      const Quad e = __builtin_shufflevector(a, b, 0, 2, 4, 6), o = __builtin_shufflevector(a, b, 1, 3, 5, 7);
      std::memcpy(even + i, &e, sizeof e);
      std::memcpy(odd + i, &o, sizeof o);
    }
  }
  for (; i < n; ++i) even[i] = x[2 * i], odd[i] = x[2 * i + 1];
}

// The scratch of one launch: the padded line, its phases, and the divisors of one output line.
template <typename T>
struct Lines {
  Lines(const PoolTiling& t, void* workspace)
      : padded(static_cast<T*>(workspace)),
        phases(t.window.stride[2] == 1 ? padded : padded + t.phase_size * t.window.stride[2]),
        divisors(phases + t.phase_size * t.window.stride[2]) {}
  T *padded, *phases, *divisors;
};

// Folds the input lines that output line (z, y) sees into the padded line.
template <typename T, typename Fold>
void fold_lines(const PoolTiling& t, const T* plane, int64_t z, int64_t y, T* padded) {
  const PlainWindow& w = t.window;
  const int64_t begin = w.pad_begin[2];
  const int64_t width = std::clamp<int64_t>(t.phase_size * w.stride[2] - begin, 0, w.input[2]);
  const IndexRange rows_z = inside_kernel(w, 0, z), rows_y = inside_kernel(w, 1, y);
  LineFold<T, Fold> folded(padded + begin, width);
  for (int64_t kz = rows_z.low; kz < rows_z.high; ++kz)
    for (int64_t ky = rows_y.low; ky < rows_y.high; ++ky)
      folded.add(plane + (w.position(0, z, kz) * w.input[1] + w.position(1, y, ky)) * w.input[2]);
  folded.finish();
}

template <typename T>
void split_phases(const PoolTiling& t, const Lines<T>& lines) {
  const int64_t stride = t.window.stride[2], n = t.phase_size;
  if (stride == 1) return;
  if (stride == 2) return split_pairs(lines.padded, lines.phases, lines.phases + n, n);
  for (int64_t r = 0; r < stride; ++r)
    for (int64_t i = 0; i < n; ++i) lines.phases[r * n + i] = lines.padded[i * stride + r];
}

template <typename T, typename Fold>
void fold_width(const PoolTiling& t, const T* phases, T* y) {
  const PlainWindow& w = t.window;
  LineFold<T, Fold> folded(y, w.output[2]);
  for (int64_t k = 0; k < w.kernel[2]; ++k) {
    const int64_t offset = k * w.dilation[2];
    folded.add(phases + offset % w.stride[2] * t.phase_size + offset / w.stride[2]);
  }
  folded.finish();
}

template <typename T, typename Fold>
Status launch_pool(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const PoolTiling*>(task.tiling);
  const PlainWindow& w = t.window;
  const Lines<T> lines(t, task.workspace(slots));
  std::fill(lines.padded, lines.padded + t.phase_size * w.stride[2], Fold::identity());
  const T* x = task.input<T>(slots, 0);
  T* y = task.output<T>(slots, 0);
  int64_t divisor = 0;  // of the lines that `lines.divisors` holds
  for (int64_t p = 0; p < t.planes; ++p, x += w.input_size()) {
    for (int64_t line = 0; line < w.output[0] * w.output[1]; ++line, y += w.output[2]) {
      const int64_t out_z = line / w.output[1], out_y = line % w.output[1];
      fold_lines<T, Fold>(t, x, out_z, out_y, lines.padded);
      split_phases(t, lines);
      fold_width<T, Fold>(t, lines.phases, y);
      if constexpr (Fold::kIsAverage) {
        const int64_t wanted = t.counts[0][out_z] * t.counts[1][out_y];
        for (int64_t i = 0; wanted != divisor && i < w.output[2]; ++i)
          lines.divisors[i] = static_cast<T>(std::max<int64_t>(wanted * t.counts[2][i], 1));
        divisor = wanted;
        Fold::divide(lines.divisors, y, w.output[2]);
      }
    }
  }
  return Status::kOk;
}

template <typename T, typename Fold>
std::shared_ptr<const Tiling> tile_pool(const TilingContext& ctx) {
  if (count_of(ctx.output(0)) == 0) return create_empty_tiling();
  if (!Fold::kIsAverage && ctx.output_count() > 1) return tile_max_indices(ctx);
  const std::vector<int64_t>& kernel = ctx.attributes().get_ints("kernel_shape");
  if (static_cast<int>(kernel.size()) != ctx.input(0).rank() - 2)
    fail_tiling(ctx, "kernel_shape does not fit " + ctx.input(0).text() + "; give one size per spatial axis");
  auto t = create_tiling<PoolTiling>(launch_pool<T, Fold>, "vector:lines");
  t->window = make_plain_window(ctx, kernel.data(), true);
  PlainWindow& w = t->window;
  if (w.output[2] == 1) w.stride[2] = 1;  // never taken; a large one would only lengthen the padded line
  t->planes = ctx.input(0)[0] * ctx.input(0)[1];
  for (int axis = 0; Fold::kIsAverage && axis < kWindowAxes; ++axis)
    t->counts[axis] = count_positions(w, axis, ctx.attr("count_include_pad", 0) != 0);
  // The only output of an axis sees nothing beyond the input.
  for (int axis = 0; axis < kWindowAxes; ++axis)
    if (w.output[axis] == 1) w.kernel[axis] = std::max<int64_t>(inside_kernel(w, axis, 0).high, 1);
  // Whole phases, and room for the padding and for every position that an output sees.
  const int64_t seen = (w.output[2] - 1) * w.stride[2] + (w.kernel[2] - 1) * w.dilation[2] + 1;
  t->phase_size = (seen + w.stride[2] - 1) / w.stride[2];
  t->workspace_bytes = static_cast<size_t>(2 * t->phase_size * w.stride[2] + w.output[2]) * sizeof(T);
  return t;
}

template <typename T>
constexpr TilingFn kTileMax = tile_pool<T, MaxFold<T>>;
template <typename T>
constexpr TilingFn kTileAverage = tile_pool<T, SumFold<T>>;

}  // namespace

void register_pool(KernelRegistry& registry) {
  registry.add("MaxPool", DType::kFloat32, kTileMax<float>);
  registry.add("MaxPool", kHalfFloats, tile_half<kTileMax<float>, 0>);
  registry.add("MaxPool", DType::kFloat64, kTileMax<double>);
  registry.add("MaxPool", DType::kInt8, kTileMax<int8_t>);
  registry.add("MaxPool", DType::kUInt8, kTileMax<uint8_t>);
  registry.add("AveragePool", DType::kFloat32, kTileAverage<float>);
  registry.add("AveragePool", kHalfFloats, tile_half<kTileAverage<float>, 0>);
  registry.add("AveragePool", DType::kFloat64, kTileAverage<double>);
}

}  // namespace asc::cpu
