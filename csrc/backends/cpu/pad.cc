// Pad: the middle is copied row by row; borders are filled with the constant, or copied from the output itself.
#include <algorithm>
#include <cstring>

#include "backends/cpu/movement.h"
#include "backends/cpu/tiling_base.h"

namespace asc::cpu {
namespace {

enum class PadMode : uint8_t { kConstant, kEdge, kReflect, kWrap };

constexpr int64_t kMaxPad = int64_t{1} << 48;  // sums of pads and dimensions cannot overflow

struct PadLevel {
  int64_t before, middle, after;  // entries of this dimension in the output
  int64_t in_stride, out_stride;  // elements
};

struct PadTiling : TilingOf<PadTiling> {
  int rank = 0;
  PadMode mode = PadMode::kConstant;
  int64_t in_offset = 0;  // elements; of the first one that is kept
  PadLevel levels[kMaxRank];
};

// Entry of the middle that border entry `i` repeats; i < 0 is before it, i >= n behind.
int64_t source_of(PadMode mode, int64_t i, int64_t n) {
  if (mode == PadMode::kEdge) return i < 0 ? 0 : n - 1;
  const int64_t period = mode == PadMode::kWrap ? n : std::max<int64_t>(2 * (n - 1), 1);
  const int64_t r = ((i % period) + period) % period;
  return r < n ? r : period - r;
}

template <typename T>
void fill(T* out, int64_t count, T value) {
  for (int64_t i = 0; i < count; ++i) out[i] = value;
}

template <typename T>
void fill_borders(const PadTiling& t, const PadLevel& level, T* out, T value) {
  T* middle = out + level.before * level.out_stride;
  T* end = middle + level.middle * level.out_stride;
  if (t.mode == PadMode::kConstant) {
    fill(out, level.before * level.out_stride, value);
    fill(end, level.after * level.out_stride, value);
    return;
  }
  const auto repeat = [&](int64_t i) {
    const T* from = middle + source_of(t.mode, i, level.middle) * level.out_stride;
    std::memcpy(middle + i * level.out_stride, from, level.out_stride * sizeof(T));
  };
  for (int64_t i = -level.before; i < 0; ++i) repeat(i);
  for (int64_t i = level.middle; i < level.middle + level.after; ++i) repeat(i);
}

template <typename T>
void pad_level(const PadTiling& t, int depth, const T* in, T* out, T value) {
  const PadLevel& level = t.levels[depth];
  T* middle = out + level.before * level.out_stride;
  if (depth == t.rank - 1) {
    if (level.middle > 0) std::memcpy(middle, in, level.middle * sizeof(T));
  } else {
    for (int64_t i = 0; i < level.middle; ++i)
      pad_level(t, depth + 1, in + i * level.in_stride, middle + i * level.out_stride, value);
  }
  fill_borders(t, level, out, value);
}

template <typename T>
Status launch_pad(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const PadTiling*>(task.tiling);
  T value = 0;
  if (t.mode == PadMode::kConstant && task.has_input(slots, 2)) std::memcpy(&value, task.input<T>(slots, 2), sizeof(T));
  pad_level(t, 0, task.input<T>(slots, 0) + t.in_offset, task.output<T>(slots, 0), value);
  return Status::kOk;
}

LaunchFn find_pad(size_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return launch_pad<uint8_t>;
    case 2:
      return launch_pad<uint16_t>;
    case 4:
      return launch_pad<uint32_t>;
    default:
      return launch_pad<uint64_t>;
  }
}

PadMode read_mode(const TilingContext& ctx) {
  const auto mode = ctx.attributes().get_string("mode", "constant");
  if (mode == "constant") return PadMode::kConstant;
  if (mode == "edge") return PadMode::kEdge;
  if (mode == "reflect") return PadMode::kReflect;
  if (mode == "wrap") return PadMode::kWrap;
  fail_tiling(ctx, "mode '" + std::string(mode) + "' is unknown; use constant, reflect, edge or wrap");
}

void read_pads(const TilingContext& ctx, int rank, int64_t* before, int64_t* after) {
  int64_t pads[2 * kMaxRank], axes[kMaxRank];
  const int count = read_ints(ctx, 1, pads, 2 * kMaxRank);
  int axis_count = rank;
  for (int i = 0; i < rank; ++i) {
    before[i] = after[i] = 0;
    axes[i] = i;
  }
  if (ctx.has_input(3)) axis_count = read_ints(ctx, 3, axes, kMaxRank);
  if (count != 2 * axis_count) fail_tiling(ctx, "pads must have two entries per axis; check the model");
  for (int i = 0; i < axis_count; ++i) {
    const int axis = checked_axis(ctx, axes[i], rank);
    before[axis] = pads[i];
    after[axis] = pads[i + axis_count];
    if (std::min(before[axis], after[axis]) < -kMaxPad || std::max(before[axis], after[axis]) > kMaxPad)
      fail_tiling(ctx, "pads of axis " + std::to_string(axis) + " exceed 2^48; check the model");
  }
}

// Merges a dimension without pads into the one outside it.
void add_level(PadTiling& t, const PadLevel& level, bool is_plain) {
  if (is_plain && t.rank > 0) {
    PadLevel& outer = t.levels[t.rank - 1];
    const int64_t n = level.middle;
    if (outer.in_stride == n * level.in_stride) {
      const bool outer_is_plain = outer.before == 0 && outer.after == 0;
      if (outer_is_plain || t.mode == PadMode::kConstant) {
        outer = {outer.before * n, outer.middle * n, outer.after * n, level.in_stride, level.out_stride};
        return;
      }
    }
  }
  t.levels[t.rank++] = level;
}

std::shared_ptr<const Tiling> tile_pad(const TilingContext& ctx) {
  const Shape& x = ctx.input(0);
  const Shape& y = ctx.output(0);
  const int rank = x.rank();
  int64_t before[kMaxRank], after[kMaxRank];
  read_pads(ctx, rank, before, after);
  if (count_of(y) == 0) return create_empty_tiling();
  auto t = create_tiling<PadTiling>(find_pad(size_of(ctx.dtype(0))), "rows");
  t->mode = read_mode(ctx);
  int64_t in_stride = count_of(x), out_stride = count_of(y);
  for (int i = 0; i < rank; ++i) {
    if (x[i] > 0) in_stride /= x[i];
    out_stride /= y[i];
    const int64_t crop = std::max<int64_t>(-before[i], 0);
    const int64_t middle = x[i] - crop - std::max<int64_t>(-after[i], 0);
    const PadLevel level{std::max<int64_t>(before[i], 0), middle, std::max<int64_t>(after[i], 0), in_stride,
                         out_stride};
    if (middle < 0 || level.before + middle + level.after != y[i])
      fail_tiling(ctx, "pads do not lead from " + x.text() + " to " + y.text() + "; check the model");
    if (middle == 0 && t->mode != PadMode::kConstant)
      fail_tiling(ctx, "axis " + std::to_string(i) + " of " + x.text() + " has nothing to repeat; pad by constant");
    t->in_offset += crop * in_stride;
    add_level(*t, level, before[i] == 0 && after[i] == 0);
  }
  if (rank == 0) t->levels[t->rank++] = {0, 1, 0, 1, 1};
  return t;
}

}  // namespace

void register_pad(KernelRegistry& registry) { registry.add("Pad", kAnyType, tile_pad); }

}  // namespace asc::cpu
