// The vector code for the compiler's default target.
#include <cstddef>
#include <cstdint>

#include "backends/cpu/vec_table.h"

#define ASC_VEC_LEVEL 1
#define ASC_VEC_BYTES 16

namespace asc::vec_base {

#include "backends/cpu/vec_entries.inc"

}  // namespace asc::vec_base
