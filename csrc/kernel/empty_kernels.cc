#include "kernel/empty_kernels.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "kernel/kernel.h"
#include "ops/op.h"

namespace asc {

namespace {

struct EmptyTiling final : Tiling {
  std::vector<Shape> extents;  // of every output; empty unless the operator is data-dependent
  size_t bytes() const override { return sizeof(*this) + extents.capacity() * sizeof(Shape); }
};

Status launch_empty(const Task&, void* const*, Worker&) { return Status::kOk; }

Status launch_extents(const Task& task, void* const* slots, Worker&) {
  int64_t* extent = task.extent(slots);
  for (const Shape& shape : static_cast<const EmptyTiling*>(task.tiling)->extents) {
    std::copy(shape.begin(), shape.end(), extent);
    extent += kMaxRank;
  }
  return Status::kOk;
}

KernelRegistry make_registry() {
  KernelRegistry registry;
  registry.set_fallback(make_empty_tiling);
  return registry;
}

}  // namespace

std::shared_ptr<const Tiling> make_empty_tiling(const TilingContext& ctx) {
  auto tiling = std::make_shared<EmptyTiling>();
  tiling->implementation = "empty";
  tiling->launch = launch_empty;
  const Op* op = OpRegistry::instance().find(ctx.node().op);
  if (op && op->kind == OpKind::kDataDependent) {
    tiling->launch = launch_extents;
    for (int i = 0; i < ctx.output_count(); ++i) tiling->extents.push_back(ctx.output(i));
  }
  return tiling;
}

const KernelRegistry& empty_kernels() {
  static const KernelRegistry registry = make_registry();
  return registry;
}

}  // namespace asc
