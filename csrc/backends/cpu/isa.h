// Instruction sets for which the vector code is compiled, and the one in use.
#pragma once

#include <cstdint>

namespace asc {

enum class Isa : uint8_t {
  kBase,  // what the compiler's default target has (x86-64: SSE2)
  kV3,    // x86-64-v3: AVX2, FMA, F16C
  kV4,    // x86-64-v4: AVX-512 F/BW/CD/DQ/VL
};

constexpr int kIsaCount = 3;
constexpr const char* kIsaNames[kIsaCount] = {"base", "v3", "v4"};

// The best set that this CPU and its operating system support.
Isa detect_isa();

// The set in use: ASCENDSCHED_ISA=base|v3|v4 clamped to detect_isa(), which also serves when the variable is unset or
// has another value. Read once per process; never changes afterwards.
Isa current_isa();

}  // namespace asc
