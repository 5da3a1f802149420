// Convolution of rows of channels for x86-64-v4 (AVX-512), whose half vectors serve few channels.
#if defined(__x86_64__) && !defined(__clang__)
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backends/cpu/line_conv.h"

// As in vec_v4.cc: after every standard header, up to the end of the file.
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")

#define ASC_LINE_REGISTERS 32

namespace asc::cpu::line_v4 {

namespace wide {
#define ASC_VEC_LEVEL 4
#define ASC_VEC_BYTES 64
#include "backends/cpu/line_conv.inc"
#undef ASC_VEC_LEVEL
#undef ASC_VEC_BYTES
template <int kVecs>
constexpr LineBlock kBlock = {mixing<kVecs>,
                              rows_of(kVecs),
                              {{sliding<kVecs, 3, 1>, sliding<kVecs, 3, 2>},
                               {sliding<kVecs, 5, 1>, sliding<kVecs, 5, 2>},
                               {sliding<kVecs, 7, 1>, nullptr}},
                              sliding_far<kVecs>};
constexpr LineVectors kVectors = {
    kLanes, {kBlock<1>, kBlock<2>, {mixing<3>, rows_of(3), {}, nullptr}, {mixing<4>, rows_of(4), {}, nullptr}}};
}  // namespace wide

namespace narrow {
#define ASC_VEC_LEVEL 3
#define ASC_VEC_BYTES 32
#include "backends/cpu/line_conv.inc"
constexpr LineBlock kBlock = {
    mixing<1>,
    rows_of(1),
    {{sliding<1, 3, 1>, sliding<1, 3, 2>}, {sliding<1, 5, 1>, sliding<1, 5, 2>}, {sliding<1, 7, 1>, nullptr}},
    sliding_far<1>};
constexpr LineVectors kVectors = {kLanes, {kBlock}};
}  // namespace narrow

extern const LineKernels kKernels;
constexpr LineKernels kKernels = {wide::kVectors, narrow::kVectors};

}  // namespace asc::cpu::line_v4
#endif
