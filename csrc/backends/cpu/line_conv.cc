#include "backends/cpu/line_conv.h"

namespace asc::cpu {

#if defined(__x86_64__) && !defined(__clang__)
namespace line_v3 {
extern const LineKernels kKernels;
}
namespace line_v4 {
extern const LineKernels kKernels;
}
#endif

const LineKernels* line_kernels_of([[maybe_unused]] Isa isa) {
#if defined(__x86_64__) && !defined(__clang__)
  if (isa == Isa::kV3) return &line_v3::kKernels;
  if (isa == Isa::kV4) return &line_v4::kKernels;
#endif
  return nullptr;
}

const LineKernels* line_kernels() {
  static const LineKernels* const kernels = line_kernels_of(current_isa());
  return kernels;
}

}  // namespace asc::cpu
