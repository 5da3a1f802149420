#include "backends/cpu/fft_passes.h"

#include <cstddef>

// The code below exists once per instruction set. Standard headers stay outside of the target pragmas, so that no
// inline function of theirs is compiled for a set that the CPU may lack.
namespace asc::cpu {
namespace {

namespace base {
#define ASC_FFT_BYTES 16
#include "backends/cpu/fft_passes.inc"
#undef ASC_FFT_BYTES
}  // namespace base

#if defined(__x86_64__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace v3 {
#define ASC_FFT_BYTES 32
#include "backends/cpu/fft_passes.inc"
#undef ASC_FFT_BYTES
}  // namespace v3
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")
namespace v4 {
#define ASC_FFT_BYTES 64
#include "backends/cpu/fft_passes.inc"
#undef ASC_FFT_BYTES
}  // namespace v4
#pragma GCC pop_options
#endif

template <typename T>
constexpr const FftPasses<T>* kVersions[kIsaCount] = {
    &base::kPasses<T>,
#if defined(__x86_64__) && !defined(__clang__)
    &v3::kPasses<T>,
    &v4::kPasses<T>,
#endif
};

}  // namespace

template <typename T>
const FftPasses<T>& fft_passes() {
  static const FftPasses<T>& table = *kVersions<T>[static_cast<size_t>(current_isa())];
  return table;
}
template const FftPasses<float>& fft_passes();
template const FftPasses<double>& fft_passes();

}  // namespace asc::cpu
