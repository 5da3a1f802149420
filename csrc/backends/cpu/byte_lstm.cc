#include "backends/cpu/byte_lstm.h"

#include "backends/cpu/isa.h"

namespace asc::cpu {

#if defined(__x86_64__) && !defined(__clang__)
namespace byte_lstm_v4 {
extern const ByteLstm kByteLstm;
}

const ByteLstm* byte_lstm() {
  static const bool runs = current_isa() >= Isa::kV4 && __builtin_cpu_supports("avx512vnni");
  return runs ? &byte_lstm_v4::kByteLstm : nullptr;
}
#else
const ByteLstm* byte_lstm() { return nullptr; }
#endif

}  // namespace asc::cpu
