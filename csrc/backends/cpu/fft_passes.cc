#include "backends/cpu/fft_passes.h"

// The code below exists once per instruction set. Standard headers stay outside of the target pragmas, so that no
// inline function of theirs is compiled for a set that the CPU may lack.
namespace asc::cpu {
namespace {

namespace base {
#define ASC_FFT_BYTES 16
#include "backends/cpu/fft_passes.inc"
#undef ASC_FFT_BYTES
constexpr FftPasses<float> kFloat = kPasses<float>;
constexpr FftPasses<double> kDouble = kPasses<double>;
}  // namespace base

#if defined(__x86_64__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace v3 {
#define ASC_FFT_BYTES 32
#include "backends/cpu/fft_passes.inc"
#undef ASC_FFT_BYTES
constexpr FftPasses<float> kFloat = kPasses<float>;
constexpr FftPasses<double> kDouble = kPasses<double>;
}  // namespace v3
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")
namespace v4 {
#define ASC_FFT_BYTES 64
#include "backends/cpu/fft_passes.inc"
#undef ASC_FFT_BYTES
constexpr FftPasses<float> kFloat = kPasses<float>;
constexpr FftPasses<double> kDouble = kPasses<double>;
}  // namespace v4
#pragma GCC pop_options
#endif

template <typename T>
const FftPasses<T>& passes_of(const FftPasses<T>& base, [[maybe_unused]] const FftPasses<T>& v3,
                              [[maybe_unused]] const FftPasses<T>& v4) {
  return current_isa() == Isa::kV4 ? v4 : current_isa() == Isa::kV3 ? v3 : base;
}

}  // namespace

#if defined(__x86_64__) && !defined(__clang__)
template <>
const FftPasses<float>& fft_passes() {
  static const FftPasses<float>& table = passes_of(base::kFloat, v3::kFloat, v4::kFloat);
  return table;
}
template <>
const FftPasses<double>& fft_passes() {
  static const FftPasses<double>& table = passes_of(base::kDouble, v3::kDouble, v4::kDouble);
  return table;
}
#else
template <>
const FftPasses<float>& fft_passes() {
  return base::kFloat;
}
template <>
const FftPasses<double>& fft_passes() {
  return base::kDouble;
}
#endif

}  // namespace asc::cpu
