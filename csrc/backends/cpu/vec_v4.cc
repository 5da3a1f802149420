// The vector code for x86-64-v4 (AVX-512).
#if defined(__x86_64__) && !defined(__clang__)
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backends/cpu/vec_table.h"

// After every standard header, so that no inline function of theirs is compiled for more than the default target, and
// up to the end of the file, where templates are instantiated.
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")

#define ASC_VEC_LEVEL 4
#define ASC_VEC_BYTES 64

namespace asc::vec_v4 {

#include "backends/cpu/vec_entries.inc"

}  // namespace asc::vec_v4
#endif
