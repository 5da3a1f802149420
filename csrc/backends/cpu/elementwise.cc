#include "backends/cpu/elementwise.h"

#include "backends/cpu/kernels.h"

namespace asc {

void register_elementwise_kernels(KernelRegistry& registry) {
  register_unary_kernels(registry);
  register_integer_unary_kernels(registry);
  register_clip_kernels(registry);
  register_arithmetic_kernels(registry);
  register_division_kernels(registry);
  register_bit_kernels(registry);
  register_pow_kernels(registry);
  register_variadic_kernels(registry);
  register_cast_kernels(registry);
  register_where_kernels(registry);
  register_copy_kernels(registry);
}

}  // namespace asc
