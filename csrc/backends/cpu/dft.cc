// DFT and STFT: fast Fourier transforms of rows, several side by side. A matrix product with a table of sines and
// cosines takes ten times as long at 400 samples (docs/decisions/0034), and its table grows with the square.
#include <algorithm>

#include "backends/cpu/fft.h"
#include "backends/cpu/half_adaptor.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/tiling_base.h"
#include "ops/signal.h"

namespace asc {
namespace cpu {
namespace {

constexpr int64_t kVectorBytes = 64, kMaxLanes = kVectorBytes / sizeof(float);

// Real rows of even length are transformed as complex ones of half the length: x(2 j) + i x(2 j + 1).
template <typename T>
struct DftTiling : Tiling {
  DftTiling(const DftGeometry& g, bool folds)
      : geometry(g),
        is_folded(folds),
        fft(folds ? g.length / 2 : g.length),
        rows(std::max(fft.rows(), g.length / 2 + 1)) {}
  DftGeometry geometry;
  bool is_folded;
  Fft<T> fft;
  int64_t rows;               // of the planes
  std::vector<T> fold_roots;  // exp(-2 pi i k / length)
  int64_t lanes = 1;
  int threads = 1;

  // The inverse transform of real numbers is the conjugate of the transform.
  bool conjugates() const { return geometry.is_inverse && geometry.in_parts == 1; }
  // Others mirror them.
  int64_t computed_bins() const { return is_folded ? std::min(geometry.bins, geometry.length / 2 + 1) : geometry.bins; }
  // Elements of the lanes that lie in a row of the input or output as pairs (re, im) without gaps.
  int64_t pairs_given(bool has_window) const {
    if (geometry.in_parts == 2) return geometry.in_step == 2 && !has_window ? geometry.given : 0;
    return is_folded && geometry.in_step == 1 ? geometry.given / 2 : 0;
  }
  // Elements of the lanes that rows of the input fill, and that rows of the output are made of.
  int64_t loaded() const {
    return geometry.is_irfft() ? geometry.length / 2 + 1 : is_folded ? geometry.length / 2 : geometry.length;
  }
  int64_t stored() const { return geometry.is_irfft() && is_folded ? geometry.length / 2 : geometry.bins; }
  int64_t pairs_wanted() const {
    if (geometry.is_irfft()) return is_folded && geometry.out_step == 1 ? geometry.length / 2 : 0;
    return geometry.out_step == 2 ? computed_bins() : 0;
  }
  int64_t plane() const { return rows * lanes; }
  size_t bytes() const override {
    return sizeof(*this) - sizeof(fft) + fft.bytes() + fold_roots.capacity() * sizeof(T);
  }
};

// Elements [begin, end) of a lane, from the samples of its row; zeros where these end. `window` may be null.
template <typename T>
void load_lane(const DftTiling<T>& t, const T* x, const T* window, int64_t begin, int64_t end, T* re, T* im) {
  const DftGeometry& g = t.geometry;
  const int64_t lanes = t.lanes, step = g.in_step;
  const bool folds = t.is_folded && !g.is_irfft();
  const int64_t whole = std::clamp(folds ? g.given / 2 : g.given, begin, end);
  for (int64_t j = begin; j < whole && folds; ++j) {
    re[j * lanes] = x[2 * j * step] * (window ? window[2 * j] : T{1});
    im[j * lanes] = x[(2 * j + 1) * step] * (window ? window[2 * j + 1] : T{1});
  }
  for (int64_t j = begin; j < whole && !folds; ++j) {
    const T w = window ? window[j] : T{1};
    re[j * lanes] = x[j * step] * w;
    im[j * lanes] = g.in_parts == 2 ? x[j * step + 1] * w : T{0};
  }
  for (int64_t j = whole; j < end; ++j) re[j * lanes] = im[j * lanes] = 0;
  // Half of a pair; a window has none, as its length is that of the transform.
  if (const int64_t last = g.given / 2; folds && g.given % 2 && begin <= last && last < end)
    re[last * lanes] = x[2 * last * step];
}

// The second half of a spectrum whose inverse is real, of odd length.
template <typename T>
void mirror(const DftTiling<T>& t, Planes<T> x) {
  const int64_t n = t.geometry.length, lanes = t.lanes;
  std::fill_n(x.im, lanes, T{0});
  for (int64_t k = 1; 2 * k < n; ++k)
    for (int64_t q = 0; q < lanes; ++q) {
      x.re[(n - k) * lanes + q] = x.re[k * lanes + q];
      x.im[(n - k) * lanes + q] = -x.im[k * lanes + q];
    }
}

template <typename T>
void store_real(const DftTiling<T>& t, const T* re, const T* im, T scale, int64_t begin, int64_t end, T* y) {
  const DftGeometry& g = t.geometry;
  const int64_t lanes = t.lanes, step = g.out_step;
  if (!t.is_folded) {
    for (int64_t k = begin; k < end; ++k) y[k * step] = re[k * lanes] * scale;
    return;
  }
  for (int64_t k = begin; k < end; ++k) {
    y[2 * k * step] = re[k * lanes] * scale;
    y[(2 * k + 1) * step] = im[k * lanes] * scale;
  }
}

template <typename T>
void store_complex(const DftTiling<T>& t, const T* re, const T* im, T scale, int64_t begin, int64_t end, T* y) {
  const DftGeometry& g = t.geometry;
  const int64_t lanes = t.lanes, step = g.out_step;
  const T im_scale = t.conjugates() ? -scale : scale;
  const int64_t mirrored = std::clamp(t.computed_bins(), begin, end);
  for (int64_t k = begin; k < mirrored; ++k) {
    y[k * step] = re[k * lanes] * scale;
    y[k * step + 1] = im[k * lanes] * im_scale;
  }
  for (int64_t k = mirrored; k < end; ++k) {
    y[k * step] = re[(g.length - k) * lanes] * scale;
    y[k * step + 1] = -im[(g.length - k) * lanes] * im_scale;
  }
}

// The transforms of what the lanes hold; the result is in x.
template <typename T>
void transform(const DftTiling<T>& t, Planes<T>* x, Planes<T>* other) {
  const DftGeometry& g = t.geometry;
  const int64_t half = g.length / 2;
  if (g.is_irfft()) {
    if (t.is_folded)
      fft_passes<T>().merge(*x, t.fold_roots.data(), half, t.lanes);
    else
      mirror(t, *x);
  }
  const bool exchanges = g.is_inverse && !t.conjugates();
  if (exchanges) std::swap(x->re, x->im), std::swap(other->re, other->im);
  t.fft.run(x, other, t.lanes);
  if (exchanges) std::swap(x->re, x->im), std::swap(other->re, other->im);
  if (t.is_folded && !g.is_irfft()) fft_passes<T>().split(*x, t.fold_roots.data(), half, t.lanes);
}

template <typename T>
struct DftOperands {
  const T *in, *window;
  T* out;
};

// Calls f(q, begin, end) for elements [done(q), count) of lanes q < used, in blocks: rows beside each other share cache
// lines where the axis is not the last one.
template <typename Done, typename F>
void for_each_block(int64_t used, int64_t count, Done done, F f) {
  constexpr int64_t kBlock = 16;
  const int64_t block = used > 1 ? kBlock : count;
  for (int64_t begin = 0; begin < count; begin += block)
    for (int64_t q = 0; q < used; ++q) {
      const int64_t end = std::min(begin + block, count);
      if (const int64_t from = std::max(begin, done(q)); from < end) f(q, from, end);
    }
}

template <typename T>
void load_rows(const DftTiling<T>& t, const DftOperands<T>& o, int64_t first, int64_t used, Planes<T> x) {
  const DftGeometry& g = t.geometry;
  const T* rows[kMaxLanes];
  for (int64_t q = 0; q < used; ++q)
    rows[q] = o.in + (first + q) / g.inner * g.in_outer_step + (first + q) % g.inner * g.in_inner_step;
  const int64_t pairs = t.pairs_given(o.window != nullptr), whole = pairs ? used / kFftRows * kFftRows : 0;
  for (int64_t q = 0; q < whole; q += kFftRows)
    fft_passes<T>().gather(rows + q, o.window, pairs, {x.re + q, x.im + q}, t.lanes);
  for_each_block(
      used, t.loaded(), [&](int64_t q) { return q < whole ? pairs : 0; },
      [&](int64_t q, int64_t begin, int64_t end) { load_lane(t, rows[q], o.window, begin, end, x.re + q, x.im + q); });
}

template <typename T>
void store_rows(const DftTiling<T>& t, const DftOperands<T>& o, int64_t first, int64_t used, Planes<T> x) {
  const DftGeometry& g = t.geometry;
  T* rows[kMaxLanes];
  for (int64_t q = 0; q < used; ++q)
    rows[q] = o.out + (first + q) / g.inner * g.out_outer_step + (first + q) % g.inner * g.out_inner_step;
  const T scale = g.is_inverse ? T{1} / static_cast<T>(g.length) : T{1};
  const int64_t pairs = t.pairs_wanted(), whole = pairs ? used / kFftRows * kFftRows : 0;
  for (int64_t q = 0; q < whole; q += kFftRows)
    fft_passes<T>().scatter({x.re + q, x.im + q}, t.lanes, pairs, scale, t.conjugates() ? -scale : scale, rows + q);
  for_each_block(
      used, t.stored(), [&](int64_t q) { return q < whole ? pairs : 0; },
      [&](int64_t q, int64_t begin, int64_t end) {
        if (g.is_irfft())
          store_real(t, x.re + q, x.im + q, scale, begin, end, rows[q]);
        else
          store_complex(t, x.re + q, x.im + q, scale, begin, end, rows[q]);
      });
}

template <typename T>
Status launch_dft(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const DftTiling<T>*>(task.tiling);
  const DftGeometry& g = t.geometry;
  const bool has_window = g.is_framed && task.has_input(slots, 2);
  const DftOperands<T> o{task.input<T>(slots, 0), has_window ? task.input<T>(slots, 2) : nullptr,
                         task.output<T>(slots, 0)};
  const int64_t count = g.outer * g.inner, blocks = (count + t.lanes - 1) / t.lanes;
  parallel_for(t.threads, t.threads, [&](int64_t part) {
    T* planes = static_cast<T*>(task.workspace(slots)) + part * 4 * t.plane();
    Planes<T> x{planes, planes + t.plane()}, other{x.im + t.plane(), x.im + 2 * t.plane()};
    const Part own = part_of(blocks, 1, t.threads, part);
    for (int64_t begin = own.begin * t.lanes; begin < std::min(own.end * t.lanes, count); begin += t.lanes) {
      const int64_t used = std::min(t.lanes, count - begin);
      if (used < t.lanes) std::fill_n(planes, 4 * t.plane(), T{0});
      load_rows(t, o, begin, used, x);
      transform(t, &x, &other);
      store_rows(t, o, begin, used, x);
    }
  });
  return Status::kOk;
}

// As many as fill a vector, while the planes stay in the second-level cache.
int64_t lanes_for(int64_t count, int64_t rows, int64_t size) {
  constexpr int64_t kCacheBytes = int64_t{1} << 20;
  int64_t lanes = 1;
  while (lanes < count && lanes < kVectorBytes / size && 8 * lanes * rows * size <= kCacheBytes) lanes *= 2;
  return lanes;
}

template <typename T>
std::shared_ptr<const Tiling> create_dft(const TilingContext& ctx, const DftGeometry& g) {
  const bool folds = (g.in_parts == 1 || g.is_irfft()) && g.length % 2 == 0;
  auto t = std::make_shared<DftTiling<T>>(g, folds);
  t->launch = launch_dft<T>;
  t->implementation = "vector:fft";
  for (int64_t k = 0; folds && 4 * k <= g.length; ++k) {
    const UnitRoot w = unit_root(k, g.length);
    t->fold_roots.push_back(static_cast<T>(w.re));
    t->fold_roots.push_back(static_cast<T>(w.im));
  }
  const int64_t count = g.outer * g.inner;
  t->threads = threads_for(ctx, t->fft.operations() * static_cast<double>(count));
  t->threads = static_cast<int>(std::min<int64_t>(t->threads, count));
  t->lanes = lanes_for((count + t->threads - 1) / t->threads, t->rows, sizeof(T));
  t->workspace_bytes = static_cast<size_t>(t->threads * 4 * t->plane()) * sizeof(T);
  return t;
}

template <bool kFramed>
std::shared_ptr<const Tiling> tile_dft(const TilingContext& ctx) {
  int axis = 0;
  const DftGeometry g = kFramed ? stft_geometry(ctx) : dft_geometry(ctx, &axis);
  if (count_of(ctx.output(0)) == 0) return create_empty_tiling();
  return ctx.dtype(0) == DType::kFloat64 ? create_dft<double>(ctx, g) : create_dft<float>(ctx, g);
}

}  // namespace
}  // namespace cpu

void register_signal_kernels(KernelRegistry& registry) {
  using cpu::tile_dft, cpu::tile_half;
  registry.add("DFT", kWideFloats, tile_dft<false>);
  registry.add("DFT", kHalfFloats, tile_half<tile_dft<false>, 0>);
  registry.add("STFT", kWideFloats, tile_dft<true>);
  registry.add("STFT", kHalfFloats, tile_half<tile_dft<true>, 0>);
}

}  // namespace asc
