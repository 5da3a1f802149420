// The movement and generation kernels, one function per file.
#pragma once

#include "kernel/kernel.h"

namespace asc::cpu {

void register_transpose(KernelRegistry& registry);
void register_slice(KernelRegistry& registry);
void register_expand(KernelRegistry& registry);
void register_concat(KernelRegistry& registry);
void register_pad(KernelRegistry& registry);
void register_reverse_sequence(KernelRegistry& registry);
void register_trilu(KernelRegistry& registry);
void register_gather(KernelRegistry& registry);
void register_elements(KernelRegistry& registry);
void register_tuples(KernelRegistry& registry);
void register_generate(KernelRegistry& registry);
void register_random(KernelRegistry& registry);
void register_one_hot(KernelRegistry& registry);
void register_nonzero(KernelRegistry& registry);

}  // namespace asc::cpu
