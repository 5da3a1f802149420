#include "backends/cpu/isa.h"

#include <cstdlib>
#include <cstring>

namespace asc {

Isa detect_isa() {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("lzcnt") &&
                  __builtin_cpu_supports("movbe");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? Isa::kV4 : v3 ? Isa::kV3 : Isa::kBase;
#else
  return Isa::kBase;
#endif
}

namespace {

Isa choose_isa() {
  const Isa best = detect_isa();
  const char* wanted = std::getenv("ASCENDSCHED_ISA");
  if (!wanted) return best;
  for (int i = 0; i < kIsaCount; ++i)
    if (std::strcmp(wanted, kIsaNames[i]) == 0 && i < static_cast<int>(best)) return static_cast<Isa>(i);
  return best;
}

}  // namespace

Isa current_isa() {
  static const Isa isa = choose_isa();
  return isa;
}

}  // namespace asc
