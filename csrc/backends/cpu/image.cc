#include "backends/cpu/image.h"

#include "backends/cpu/kernels.h"

namespace asc {

void register_image_kernels(KernelRegistry& registry) {
  cpu::register_grid_sample(registry);
  cpu::register_resize(registry);
  cpu::register_non_max_suppression(registry);
}

}  // namespace asc
