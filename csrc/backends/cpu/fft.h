// Fast Fourier transforms of any length: Stockham's, for lengths whose prime factors are small, and Bluestein's, which
// makes of any other length a convolution of such a length. Immutable once made; safe to use from any thread.
// Stockham: Van Loan, "Computational Frameworks for the Fast Fourier Transform", 1992, 1.7. Bluestein: "A linear
// filtering approach to the computation of discrete Fourier transform", IEEE Trans. Audio Electroacoust. 18(4), 1970.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/cpu/fft_passes.h"

namespace asc::cpu {

// exp(-2 pi i k / n), 0 <= k < n: rounded once or twice, from an argument of at most a quarter of pi.
struct UnitRoot {
  double re, im;
};
UnitRoot unit_root(int64_t k, int64_t n);

// T: float, double.
template <typename T>
class Fft {
 public:
  // length >= 1
  explicit Fft(int64_t length);

  // Rows that the planes of run() need: at least `length`.
  int64_t rows() const { return convolution_ ? convolution_->length_ : length_; }
  double operations() const;  // of one transform, roughly
  size_t bytes() const;

  // Transforms the columns of x, in its first `length` rows, with exp(-2 pi i / length); no factor. `x` and `other` are
  // exchanged where the result is in the other one: it is in x. The rows behind it are not kept.
  void run(Planes<T>* x, Planes<T>* other, int64_t lanes) const;

 private:
  struct Pass {
    int radix;
    std::vector<T> twiddles, roots;
  };
  void run_passes(Planes<T>* x, Planes<T>* other, int64_t lanes) const;
  void add_pass(int64_t length, int radix);
  void make_convolution();

  int64_t length_;
  std::vector<Pass> passes_;
  std::unique_ptr<Fft> convolution_;  // Bluestein's
  std::vector<T> chirp_, spectrum_;   // exp(-pi i k^2 / length), and the transform of its inverse
};

}  // namespace asc::cpu
