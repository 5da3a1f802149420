// Trilu: keeps the upper or lower triangle of each matrix, zeros elsewhere.
#include <algorithm>
#include <cstring>

#include "backends/cpu/movement.h"
#include "backends/cpu/tiling_base.h"

namespace asc::cpu {
namespace {

struct TriluTiling : TilingOf<TriluTiling> {
  int64_t matrices, rows, columns;
  int64_t diagonal;  // column minus row of the last kept (lower) or first kept (upper) diagonal
  int64_t element_bytes;
  bool is_upper;
};

Status launch_trilu(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const TriluTiling*>(task.tiling);
  const char* in = task.input<char>(slots, 0);
  char* out = task.output<char>(slots, 0);
  const int64_t size = t.element_bytes, row_bytes = t.columns * size;
  for (int64_t m = 0; m < t.matrices; ++m) {
    for (int64_t r = 0; r < t.rows; ++r, in += row_bytes, out += row_bytes) {
      // Columns [0, edge) form one part, [edge, columns) the other.
      const int64_t edge = std::clamp<int64_t>(r + t.diagonal + (t.is_upper ? 0 : 1), 0, t.columns) * size;
      if (t.is_upper) {
        std::memset(out, 0, edge);
        std::memcpy(out + edge, in + edge, row_bytes - edge);
      } else {
        std::memcpy(out, in, edge);
        std::memset(out + edge, 0, row_bytes - edge);
      }
    }
  }
  return Status::kOk;
}

std::shared_ptr<const Tiling> tile_trilu(const TilingContext& ctx) {
  const Shape& x = ctx.input(0);
  const int rank = x.rank();
  if (rank < 2) fail_tiling(ctx, "needs rank 2 or more, got " + x.text() + "; check the model");
  if (count_of(x) == 0) return create_empty_tiling();
  auto t = create_tiling<TriluTiling>(launch_trilu, "rows");
  t->matrices = x.span_of(0, rank - 2);
  t->rows = x[rank - 2];
  t->columns = x[rank - 1];
  const int64_t k = ctx.has_input(1) ? read_int(ctx, 1) : 0;
  t->diagonal = std::clamp(k, -t->rows - 1, t->columns + 1);  // beyond, nothing changes
  t->element_bytes = static_cast<int64_t>(size_of(ctx.dtype(0)));
  t->is_upper = ctx.attr("upper", 1) != 0;
  return t;
}

}  // namespace

void register_trilu(KernelRegistry& registry) { registry.add("Trilu", kAnyType, tile_trilu); }

}  // namespace asc::cpu
