// Copies for operators whose output holds the bytes of their input, used where the output may not share its memory.
#include <cstring>

#include "backends/cpu/elementwise.h"

namespace asc {
namespace {

struct CopyTiling : PlainTiling<CopyTiling> {
  size_t copy_bytes = 0;
};

Status launch_copy(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const CopyTiling*>(task.tiling);
  const auto* from = task.input<char>(slots, 0);
  auto* to = task.output<char>(slots, 0);
  if (from != to && t.copy_bytes) std::memcpy(to, from, t.copy_bytes);
  return Status::kOk;
}

std::shared_ptr<const Tiling> tile_copy(const TilingContext& ctx) {
  auto t = std::make_shared<CopyTiling>();
  t->launch = launch_copy;
  t->implementation = "copy";
  t->copy_bytes = element_count(ctx.output(0)) * size_of(ctx.output_dtype(0));
  return t;
}

}  // namespace

void register_copy_kernels(KernelRegistry& registry) {
  for (const char* op : {"Identity", "Dropout", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "BitCast"})
    registry.add(op, kAnyType, tile_copy);
}

}  // namespace asc
