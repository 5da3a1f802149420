// The CPU kernels, by family; each function is implemented beside its kernels. The device builds its registry from all.
#pragma once

#include "kernel/kernel.h"

namespace asc {

void register_elementwise_kernels(KernelRegistry& registry);  // unary, binary, variadic, Cast, Where, view copies
void register_movement_kernels(KernelRegistry& registry);     // Transpose, Concat, Gather, … and generators
void register_reduce_kernels(KernelRegistry& registry);       // Reduce*, ArgMax, TopK, softmax, normalisation
void register_matmul_kernels(KernelRegistry& registry);       // MatMul, Gemm
void register_nn_kernels(KernelRegistry& registry);           // Conv, pooling, LSTM
void register_extension_kernels(KernelRegistry& registry);    // operators that packages bring
void register_fused_kernels(KernelRegistry& registry);        // nodes that fusion made
void register_quantize_kernels(KernelRegistry& registry);     // QuantizeLinear, …, MatMulInteger
void register_signal_kernels(KernelRegistry& registry);       // DFT, STFT
void register_image_kernels(KernelRegistry& registry);        // Resize, NonMaxSuppression

}  // namespace asc
