// Concat and Split: blocks of whole inner rows, interleaved over the dimensions before the axis.
#include <cstring>
#include <vector>

#include "backends/cpu/movement.h"
#include "backends/cpu/tiling_base.h"

namespace asc::cpu {
namespace {

constexpr int kInlineParts = 8;  // tilings of small nodes are one allocation

struct PartsTiling : Tiling {
  size_t bytes() const override { return sizeof(PartsTiling) + many.capacity() * sizeof(int64_t); }
  const int64_t* blocks() const { return many.empty() ? few : many.data(); }

  int64_t outer = 1;  // dimensions before the axis
  int64_t row = 0;    // bytes of all parts together
  int64_t few[kInlineParts];
  std::vector<int64_t> many;  // bytes of each part, where there are more than kInlineParts
};

Status launch_concat(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const PartsTiling*>(task.tiling);
  const int64_t* blocks = t.blocks();
  char* out = task.output<char>(slots, 0);
  for (int p = 0; p < task.input_count; ++p) {
    const char* in = task.input<char>(slots, p);
    const int64_t block = blocks[p];
    if (block == 0) continue;
    for (int64_t i = 0; i < t.outer; ++i) std::memcpy(out + i * t.row, in + i * block, block);
    out += block;
  }
  return Status::kOk;
}

// Scalars of 8 bytes, as shape arithmetic has them.
Status launch_concat_words(const Task& task, void* const* slots, Worker&) {
  uint64_t* out = task.output<uint64_t>(slots, 0);
  for (int p = 0; p < task.input_count; ++p) std::memcpy(out + p, task.input<char>(slots, p), 8);
  return Status::kOk;
}

Status launch_split(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const PartsTiling*>(task.tiling);
  const int64_t* blocks = t.blocks();
  const char* in = task.input<char>(slots, 0);
  for (int p = 0; p < task.output_count; ++p) {
    const int64_t block = blocks[p];
    if (block == 0) continue;
    if (task.has_output(slots, p)) {
      char* out = task.output<char>(slots, p);
      for (int64_t i = 0; i < t.outer; ++i) std::memcpy(out + i * block, in + i * t.row, block);
    }
    in += block;
  }
  return Status::kOk;
}

// `part(i)` is the shape of part i, `whole` that of all together.
template <typename Part>
std::shared_ptr<PartsTiling> create_parts(const TilingContext& ctx, LaunchFn launch, const Shape& whole, int axis,
                                          int count, size_t element_bytes, Part part) {
  auto t = create_tiling<PartsTiling>(launch, "blocks");
  const int64_t inner = whole.span_of(axis + 1, whole.rank()) * static_cast<int64_t>(element_bytes);
  t->outer = whole.span_of(0, axis);
  t->row = whole[axis] * inner;
  if (count > kInlineParts) t->many.resize(count);
  int64_t* blocks = count > kInlineParts ? t->many.data() : t->few;
  int64_t sum = 0;
  for (int i = 0; i < count; ++i) {
    const Shape& s = part(i);
    if (s.rank() != whole.rank()) fail_tiling(ctx, "parts differ in rank; check the model");
    blocks[i] = s[axis] * inner;
    sum += blocks[i];
  }
  if (sum != t->row) fail_tiling(ctx, "the parts do not add up to " + whole.text() + "; check the model");
  return t;
}

std::shared_ptr<const Tiling> tile_concat(const TilingContext& ctx) {
  const Shape& y = ctx.output(0);
  const int axis = checked_axis(ctx, ctx.attr("axis", 0), y.rank());
  if (count_of(y) == 0) return create_empty_tiling();
  const size_t size = size_of(ctx.dtype(0));
  auto t = create_parts(ctx, launch_concat, y, axis, ctx.input_count(), size,
                        [&](int i) -> const Shape& { return ctx.input(i); });
  bool is_words = t->outer == 1;
  for (int i = 0; i < ctx.input_count(); ++i) is_words &= t->blocks()[i] == 8;
  if (is_words) {
    t->launch = launch_concat_words;
    t->implementation = "words";
  }
  return t;
}

std::shared_ptr<const Tiling> tile_split(const TilingContext& ctx) {
  const Shape& x = ctx.input(0);
  const int axis = checked_axis(ctx, ctx.attr("axis", 0), x.rank());
  if (count_of(x) == 0) return create_empty_tiling();
  return create_parts(ctx, launch_split, x, axis, ctx.output_count(), size_of(ctx.dtype(0)),
                      [&](int i) -> const Shape& { return ctx.output(i); });
}

}  // namespace

void register_concat(KernelRegistry& registry) {
  registry.add("Concat", kAnyType, tile_concat);
  registry.add("Split", kAnyType, tile_split);
}

}  // namespace asc::cpu
