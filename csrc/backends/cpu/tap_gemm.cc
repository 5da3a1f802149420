#include "backends/cpu/tap_gemm.h"

#include <cstddef>

// The code below exists once per instruction set. Standard headers stay outside of the target pragmas, so that no
// inline function of theirs is compiled for a set that the CPU may lack.
namespace asc::cpu {
namespace {

namespace base {
#define ASC_TAP_LANES 4
#define ASC_TAP_WIDE 2
#include "backends/cpu/tap_gemm.inc"
#undef ASC_TAP_LANES
#undef ASC_TAP_WIDE
}  // namespace base

#if defined(__x86_64__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace v3 {
#define ASC_TAP_LANES 8
#define ASC_TAP_WIDE 2
#include "backends/cpu/tap_gemm.inc"
#undef ASC_TAP_LANES
#undef ASC_TAP_WIDE
}  // namespace v3
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")
namespace v4 {
#define ASC_TAP_LANES 16
#define ASC_TAP_WIDE 4
#include "backends/cpu/tap_gemm.inc"
#undef ASC_TAP_LANES
#undef ASC_TAP_WIDE
}  // namespace v4
#pragma GCC pop_options
#endif

constexpr TapGemm kVersions[kIsaCount] = {
    base::add,
#if defined(__x86_64__) && !defined(__clang__)
    v3::add,
    v4::add,
#endif
};

}  // namespace

TapGemm tap_gemm_of(Isa isa) { return kVersions[static_cast<size_t>(isa)]; }

TapGemm tap_gemm() {
  static const TapGemm gemm = tap_gemm_of(current_isa());
  return gemm;
}

}  // namespace asc::cpu
