#include "backends/cpu/fft.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace asc::cpu {
namespace {

constexpr double kPi = 3.14159265358979323846;

// Fours first: they need the fewest passes. Empty for lengths with a large prime factor.
std::vector<int> radices_of(int64_t n) {
  std::vector<int> radices;
  for (int radix : {4, 2})
    for (; n % radix == 0; n /= radix) radices.push_back(radix);
  for (int radix = 3; radix <= kMaxFftRadix && n > 1; radix += 2)
    for (; n % radix == 0; n /= radix) radices.push_back(radix);
  if (n > 1) radices.clear();
  return radices;
}

// The next length that only the quick radices divide.
int64_t quick_length(int64_t at_least) {
  for (int64_t n = at_least;; ++n) {
    int64_t rest = n;
    for (int factor : {2, 3, 5})
      while (rest % factor == 0) rest /= factor;
    if (rest == 1) return n;
  }
}

template <typename T>
std::vector<T> roots_of(int radix) {
  std::vector<T> roots;
  for (int k = 0; k < radix; ++k) {
    const UnitRoot w = unit_root(k, radix);
    roots.push_back(static_cast<T>(w.re));
    roots.push_back(static_cast<T>(w.im));
  }
  return roots;
}

template <typename T>
Planes<T> exchanged(Planes<T> x) {
  return {x.im, x.re};
}

}  // namespace

UnitRoot unit_root(int64_t k, int64_t n) {
  const int64_t quarter = 4 * k / n, rest = 4 * k - quarter * n;  // the angle is (quarter + rest / n) * pi / 2
  const bool is_late = 2 * rest > n;
  const double angle = kPi / 2 * static_cast<double>(is_late ? n - rest : rest) / static_cast<double>(n);
  double c = std::cos(angle), s = std::sin(angle);
  if (is_late) std::swap(c, s);
  switch (quarter) {
    case 0:
      return {c, -s};
    case 1:
      return {-s, -c};
    case 2:
      return {-c, s};
    default:
      return {s, c};
  }
}

template <typename T>
Fft<T>::Fft(int64_t length) : length_(length) {
  const std::vector<int> radices = radices_of(length);
  if (radices.empty() && length > 1) make_convolution();
  for (int radix : radices) {
    add_pass(length, radix);
    length /= radix;
  }
}

template <typename T>
void Fft<T>::add_pass(int64_t length, int radix) {
  Pass pass{radix, {}, {}};
  const int64_t groups = length / radix;
  pass.twiddles.reserve(static_cast<size_t>(2 * groups * (radix - 1)));
  for (int64_t p = 0; p < groups; ++p)
    for (int64_t j = 1; j < radix; ++j) {
      const UnitRoot w = unit_root(p * j, length);
      pass.twiddles.push_back(static_cast<T>(w.re));
      pass.twiddles.push_back(static_cast<T>(w.im));
    }
  if (radix % 2) pass.roots = roots_of<T>(radix);
  passes_.push_back(std::move(pass));
}

template <typename T>
void Fft<T>::make_convolution() {
  const int64_t n = length_, size = quick_length(2 * n - 1);
  convolution_ = std::make_unique<Fft>(size);
  chirp_.resize(static_cast<size_t>(2 * n));
  std::vector<T> planes(static_cast<size_t>(4 * size));
  Planes<T> x{planes.data(), planes.data() + size}, other{x.im + size, x.im + 2 * size};
  for (int64_t k = 0; k < n; ++k) {
    const UnitRoot w = unit_root(k * k % (2 * n), 2 * n);
    chirp_[static_cast<size_t>(2 * k)] = static_cast<T>(w.re);
    chirp_[static_cast<size_t>(2 * k + 1)] = static_cast<T>(w.im);
    const int64_t mirrored = k ? size - k : 0;
    x.re[k] = x.re[mirrored] = static_cast<T>(w.re / static_cast<double>(size));
    x.im[k] = x.im[mirrored] = static_cast<T>(-w.im / static_cast<double>(size));
  }
  convolution_->run(&x, &other, 1);
  spectrum_.reserve(static_cast<size_t>(2 * size));
  for (int64_t k = 0; k < size; ++k) {
    spectrum_.push_back(x.re[k]);
    spectrum_.push_back(x.im[k]);
  }
}

template <typename T>
void Fft<T>::run_passes(Planes<T>* x, Planes<T>* other, int64_t lanes) const {
  FftPassArgs<T> args;
  args.groups = length_;
  args.width = lanes;
  for (const Pass& pass : passes_) {
    args.radix = pass.radix;
    args.groups /= pass.radix;
    args.twiddles = pass.twiddles.data();
    args.roots = pass.roots.data();
    args.from = *x;
    args.to = *other;
    fft_passes<T>().pass(args);
    args.width *= pass.radix;
    std::swap(*x, *other);
  }
}

// The inverse transform is that of exchanged real and imaginary parts.
template <typename T>
void Fft<T>::run(Planes<T>* x, Planes<T>* other, int64_t lanes) const {
  if (!convolution_) return run_passes(x, other, lanes);
  const FftPasses<T>& passes = fft_passes<T>();
  passes.multiply(*x, chirp_.data(), length_, lanes);
  std::fill(x->re + length_ * lanes, x->re + rows() * lanes, T{0});
  std::fill(x->im + length_ * lanes, x->im + rows() * lanes, T{0});
  convolution_->run_passes(x, other, lanes);
  passes.multiply(*x, spectrum_.data(), rows(), lanes);
  Planes<T> a = exchanged(*x), b = exchanged(*other);
  convolution_->run_passes(&a, &b, lanes);
  *x = exchanged(a);
  *other = exchanged(b);
  passes.multiply(*x, chirp_.data(), length_, lanes);
}

template <typename T>
double Fft<T>::operations() const {
  constexpr double kPerElement = 5;
  const double n = static_cast<double>(length_);
  return convolution_ ? 2 * convolution_->operations() + 18 * n : kPerElement * n * std::log2(std::max(n, 2.0));
}

template <typename T>
size_t Fft<T>::bytes() const {
  size_t elements = chirp_.capacity() + spectrum_.capacity();
  for (const Pass& pass : passes_) elements += pass.twiddles.capacity() + pass.roots.capacity();
  return sizeof(Fft) + passes_.capacity() * sizeof(Pass) + elements * sizeof(T) +
         (convolution_ ? convolution_->bytes() : 0);
}

template class Fft<float>;
template class Fft<double>;

}  // namespace asc::cpu
