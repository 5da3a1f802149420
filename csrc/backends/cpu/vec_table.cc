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

namespace {

constexpr const VecTable* kVersions[kIsaCount] = {
    &vec_base::kTable,
#if defined(__x86_64__) && !defined(__clang__)
    &vec_v3::kTable,
    &vec_v4::kTable,
#endif
};

}  // namespace

const VecTable* vec_table_of(Isa isa) { return kVersions[static_cast<size_t>(isa)]; }

const VecTable& vec_table() {
  static const VecTable& table = *vec_table_of(current_isa());
  return table;
}

}  // namespace asc
