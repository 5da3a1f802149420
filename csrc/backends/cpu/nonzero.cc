// NonZero and Compress: the kernel decides the output's shape, and writes it to the task's extent.
#include <cstring>
#include <limits>

#include "backends/cpu/movement.h"
#include "backends/cpu/tiling_base.h"

namespace asc::cpu {
namespace {

struct NonZeroTiling : TilingOf<NonZeroTiling> {
  int rank = 0;
  int64_t count = 0;
  int64_t dims[kMaxRank];
};

// T has the element's size; `mask` clears the sign of floats, whose -0 is zero too.
template <typename T, T mask>
Status launch_nonzero(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const NonZeroTiling*>(task.tiling);
  const T* x = task.input<T>(slots, 0);
  int64_t* out = task.output<int64_t>(slots, 0);
  int64_t found = 0;
  for (int64_t i = 0; i < t.count; ++i) found += (x[i] & mask) != 0;
  int64_t* extent = task.extent(slots);
  extent[0] = t.rank;
  extent[1] = found;
  if (t.rank == 0 || found == 0) return Status::kOk;
  // Row by row of the last dimension; the outer coordinates count along.
  const int64_t row = t.dims[t.rank - 1];
  int64_t index[kMaxRank] = {};
  int64_t column = 0;
  for (int64_t start = 0; start < t.count; start += row) {
    // Every position is written, and kept by advancing: no branch depends on the data but the last one.
    for (int64_t i = 0; i < row; ++i) {
      for (int d = 0; d < t.rank - 1; ++d) out[d * found + column] = index[d];
      out[(t.rank - 1) * found + column] = i;
      column += (x[start + i] & mask) != 0;
      if (column == found) return Status::kOk;
    }
    for (int d = t.rank - 2; d >= 0 && ++index[d] == t.dims[d]; --d) index[d] = 0;
  }
  return Status::kOk;
}

LaunchFn find_nonzero(DType type) {
  switch (type) {
    case DType::kFloat32:
      return launch_nonzero<uint32_t, 0x7FFFFFFFu>;
    case DType::kFloat64:
      return launch_nonzero<uint64_t, 0x7FFFFFFFFFFFFFFFu>;
    case DType::kFloat16:
    case DType::kBFloat16:
      return launch_nonzero<uint16_t, 0x7FFFu>;
    default:
      break;
  }
  switch (size_of(type)) {
    case 1:
      return launch_nonzero<uint8_t, 0xFFu>;
    case 2:
      return launch_nonzero<uint16_t, 0xFFFFu>;
    case 4:
      return launch_nonzero<uint32_t, 0xFFFFFFFFu>;
    default:
      return launch_nonzero<uint64_t, std::numeric_limits<uint64_t>::max()>;
  }
}

std::shared_ptr<const Tiling> tile_nonzero(const TilingContext& ctx) {
  const Shape& x = ctx.input(0);
  auto t = create_tiling<NonZeroTiling>(find_nonzero(ctx.dtype(0)), "two passes");
  t->rank = x.rank();
  t->count = count_of(x);
  for (int d = 0; d < t->rank; ++d) t->dims[d] = x[d];
  return t;
}

// Whole tensor as [outer, axis, block].
struct CompressTiling : TilingOf<CompressTiling> {
  int64_t outer = 1, axis = 0, block_bytes = 0;
  int64_t conditions = 0;  // entries of the condition that count
  int rank = 1, axis_position = 0;
  int64_t dims[kMaxRank];
};

Status launch_compress(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const CompressTiling*>(task.tiling);
  const char* in = task.input<char>(slots, 0);
  const uint8_t* condition = task.input<uint8_t>(slots, 1);
  char* out = task.output<char>(slots, 0);
  int64_t kept = 0;
  for (int64_t i = 0; i < t.conditions; ++i) kept += condition[i] != 0;
  int64_t* extent = task.extent(slots);
  for (int d = 0; d < t.rank; ++d) extent[d] = d == t.axis_position ? kept : t.dims[d];
  if (kept == 0 || t.block_bytes == 0) return Status::kOk;
  for (int64_t o = 0; o < t.outer; ++o, in += t.axis * t.block_bytes) {
    for (int64_t i = 0; i < t.conditions; ++i) {
      if (!condition[i]) continue;
      std::memcpy(out, in + i * t.block_bytes, t.block_bytes);
      out += t.block_bytes;
    }
  }
  return Status::kOk;
}

std::shared_ptr<const Tiling> tile_compress(const TilingContext& ctx) {
  const Shape& x = ctx.input(0);
  const auto size = static_cast<int64_t>(size_of(ctx.dtype(0)));
  if (ctx.dtype(1) != DType::kBool)
    fail_tiling(ctx, std::string("condition must be bool, got ") + name_of(ctx.dtype(1)) + "; add a Cast");
  auto t = create_tiling<CompressTiling>(launch_compress, "blocks");
  if (ctx.attributes().has("axis")) {
    const int axis = checked_axis(ctx, ctx.attr("axis", 0), x.rank());
    t->rank = x.rank();
    t->axis_position = axis;
    for (int d = 0; d < x.rank(); ++d) t->dims[d] = x[d];
    t->outer = x.span_of(0, axis);
    t->axis = x[axis];
    t->block_bytes = x.span_of(axis + 1, x.rank()) * size;
  } else {
    t->axis = count_of(x);
    t->block_bytes = size;
  }
  t->conditions = std::min(count_of(ctx.input(1)), t->axis);
  return t;
}

}  // namespace

void register_nonzero(KernelRegistry& registry) {
  registry.add("NonZero", kAnyType, tile_nonzero);
  registry.add("Compress", kAnyType, tile_compress);
}

}  // namespace asc::cpu
