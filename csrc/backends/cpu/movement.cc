#include "backends/cpu/movement.h"

#include "backends/cpu/kernels.h"

namespace asc {

void register_movement_kernels(KernelRegistry& registry) {
  cpu::register_transpose(registry);
  cpu::register_slice(registry);
  cpu::register_expand(registry);
  cpu::register_concat(registry);
  cpu::register_pad(registry);
  cpu::register_reverse_sequence(registry);
  cpu::register_trilu(registry);
  cpu::register_gather(registry);
  cpu::register_elements(registry);
  cpu::register_tuples(registry);
  cpu::register_generate(registry);
  cpu::register_random(registry);
  cpu::register_one_hot(registry);
  cpu::register_nonzero(registry);
}

}  // namespace asc
