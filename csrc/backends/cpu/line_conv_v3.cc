// Convolution of rows of channels for x86-64-v3 (AVX2).
#if defined(__x86_64__) && !defined(__clang__)
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backends/cpu/line_conv.h"

// As in vec_v3.cc: after every standard header, up to the end of the file.
#pragma GCC target("arch=x86-64-v3")

#define ASC_VEC_LEVEL 3
#define ASC_VEC_BYTES 32
#define ASC_LINE_REGISTERS 16

namespace asc::cpu::line_v3 {

#include "backends/cpu/line_conv.inc"

extern const LineKernels kKernels;
// With 16 registers, oneDNN is as good at fewer taps and at strides.
constexpr LineBlock kBlock = {
    mixing<1>, rows_of(1), {{}, {sliding<1, 5, 1>, nullptr}, {sliding<1, 7, 1>, nullptr}}, sliding_far<1>};
constexpr LineVectors kVectors = {kLanes, {kBlock, {mixing<2>, rows_of(2), {}, nullptr}}};
constexpr LineKernels kKernels = {kVectors, kVectors};

}  // namespace asc::cpu::line_v3
#endif
