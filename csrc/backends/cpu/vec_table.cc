#include "backends/cpu/vec_table.h"

namespace asc {

namespace vec_base {
extern const VecTable kTable;
}
#if defined(__x86_64__) && !defined(__clang__)
namespace vec_v3 {
extern const VecTable kTable;
}
namespace vec_v4 {
extern const VecTable kTable;
}
#endif

const VecTable* vec_table_of(Isa isa) {
  switch (isa) {
#if defined(__x86_64__) && !defined(__clang__)
    case Isa::kV3:
      return &vec_v3::kTable;
    case Isa::kV4:
      return &vec_v4::kTable;
#endif
    case Isa::kBase:
      return &vec_base::kTable;
    default:
      return nullptr;
  }
}

const VecTable& vec_table() {
  static const VecTable& table = *vec_table_of(current_isa());
  return table;
}

}  // namespace asc
