// The kernels on images and detections, one function per file.
#pragma once

#include "kernel/kernel.h"

namespace asc::cpu {

void register_grid_sample(KernelRegistry& registry);
void register_resize(KernelRegistry& registry);
void register_non_max_suppression(KernelRegistry& registry);

}  // namespace asc::cpu
