#include "backends/cpu/small_gemm.h"

#include <cstddef>

// The code below exists once per instruction set. Standard headers stay outside of the target pragmas, so that no
// inline function of theirs is compiled for a set that the CPU may lack.
namespace asc::cpu {
namespace {

namespace base {
#define ASC_GEMM_LANES 4
#define ASC_GEMM_WIDE 2
#include "backends/cpu/small_gemm.inc"
#undef ASC_GEMM_LANES
#undef ASC_GEMM_WIDE
constexpr SmallGemm kTable = {rows, dots};
}  // namespace base

#if defined(__x86_64__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace v3 {
#define ASC_GEMM_LANES 8
#define ASC_GEMM_WIDE 2
#include "backends/cpu/small_gemm.inc"
#undef ASC_GEMM_LANES
#undef ASC_GEMM_WIDE
constexpr SmallGemm kTable = {rows, dots};
}  // namespace v3
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")
namespace v4 {
#define ASC_GEMM_LANES 16
#define ASC_GEMM_WIDE 4
#include "backends/cpu/small_gemm.inc"
#undef ASC_GEMM_LANES
#undef ASC_GEMM_WIDE
constexpr SmallGemm kTable = {rows, dots};
}  // namespace v4
#pragma GCC pop_options
#endif

constexpr const SmallGemm* kVersions[kIsaCount] = {
    &base::kTable,
#if defined(__x86_64__) && !defined(__clang__)
    &v3::kTable,
    &v4::kTable,
#endif
};

}  // namespace

const SmallGemm* small_gemm_of(Isa isa) { return kVersions[static_cast<size_t>(isa)]; }

const SmallGemm& small_gemm() {
  static const SmallGemm& table = *small_gemm_of(current_isa());
  return table;
}

// Measured against OpenBLAS and oneDNN. Without packing, the lines of b must not spread over too many pages, unless b
// is read for a few rows only; the narrow column blocks of the smaller sets suffer sooner.
bool prefers_rows(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kElements = int64_t{1} << 16;
  switch (current_isa()) {
    case Isa::kV4:
      return m <= 16 || n <= 64 || k <= 1024;
    case Isa::kV3:
      return m <= 8 || (n <= kElements && k <= 512 && n * k <= kElements);
    default:
      return m <= 4;
  }
}

// Measured against OpenBLAS, which has small kernels without packing, and copies the whole of b for larger products:
// four times the time of reading it for eight rows and a b of ten megabytes.
bool prefers_dots(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kMostRows = 16;
  constexpr double kSmall = 1 << 18;
  if (m <= 2) return true;
  return m <= kMostRows && static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) > kSmall;
}

}  // namespace asc::cpu
