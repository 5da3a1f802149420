// The inner loops of the fast Fourier transform, one version per instruction set. Several transforms run side by side,
// as lanes: a row holds one element of each, real and imaginary parts in planes of their own.
#pragma once

#include <cstdint>

#include "backends/cpu/isa.h"

namespace asc::cpu {

template <typename T>
struct Planes {
  T *re, *im;
};

constexpr int kFftRows = 4;       // of gather and scatter
constexpr int kMaxFftRadix = 31;  // radices are 2, 4 and odd numbers up to here

// One decimation of transforms of length radix * groups: to(radix * p + j) = w_p^j * (butterfly j of from(p + k *
// groups)), where an element is `width` numbers. Stockham's order: no bit reversal follows.
template <typename T>
struct FftPassArgs {
  int radix;
  int64_t groups, width;
  const T* twiddles;  // (re, im) of w_p^j, j = 1 … radix - 1, p after p
  const T* roots;     // odd radices: (re, im) of exp(-2 pi i k / radix)
  Planes<T> from, to;
};

template <typename T>
struct FftPasses {
  void (*pass)(const FftPassArgs<T>& args);
  // Row k times the complex number (w[2 k], w[2 k + 1]).
  void (*multiply)(Planes<T> x, const T* w, int64_t rows, int64_t lanes);
  // From the transform of length n / 2 of x(2 j) + i x(2 j + 1), the bins 0 … n / 2 of the transform of the real x; and
  // back, without factors. w[k] = exp(-2 pi i k / n), k <= n / 4.
  void (*split)(Planes<T> x, const T* w, int64_t half, int64_t lanes);
  void (*merge)(Planes<T> x, const T* w, int64_t half, int64_t lanes);
  // Four lanes from or to as many rows of `count` pairs (re, im), one behind the other. `factors` may be null, else the
  // pairs are multiplied by it, number by number.
  void (*gather)(const T* const* rows, const T* factors, int64_t count, Planes<T> to, int64_t lanes);
  void (*scatter)(Planes<T> from, int64_t lanes, int64_t count, T re_scale, T im_scale, T* const* rows);
};

// The version of current_isa(). T: float, double.
template <typename T>
const FftPasses<T>& fft_passes();

}  // namespace asc::cpu
