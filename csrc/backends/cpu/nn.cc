#include "backends/cpu/nn.h"

#include "backends/cpu/kernels.h"

namespace asc {

void register_nn_kernels(KernelRegistry& registry) {
  cpu::register_conv(registry);
  cpu::register_conv_last(registry);
  cpu::register_conv_transpose(registry);
  cpu::register_pool(registry);
  cpu::register_pool_last(registry);
  cpu::register_global_pool(registry);
  cpu::register_gru(registry);
  cpu::register_lstm(registry);
  cpu::register_rnn(registry);
}

}  // namespace asc
