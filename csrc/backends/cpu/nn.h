// The kernels of convolution, pooling and recurrent layers, one function per file.
#pragma once

#include "kernel/kernel.h"

namespace asc::cpu {

void register_conv(KernelRegistry& registry);
void register_conv_last(KernelRegistry& registry);
void register_conv_transpose(KernelRegistry& registry);
void register_pool(KernelRegistry& registry);
void register_pool_last(KernelRegistry& registry);
void register_global_pool(KernelRegistry& registry);
void register_gru(KernelRegistry& registry);
void register_lstm(KernelRegistry& registry);
void register_rnn(KernelRegistry& registry);

// MaxPool that also tells where its maxima lie.
std::shared_ptr<const Tiling> tile_max_indices(const TilingContext& ctx);

}  // namespace asc::cpu
