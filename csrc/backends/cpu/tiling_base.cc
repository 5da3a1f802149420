#include "backends/cpu/tiling_base.h"

namespace asc::cpu {

void fail_tiling(const TilingContext& ctx, const std::string& what) {
  throw GraphError("[tiling] " + ctx.node().op + " '" + ctx.node_name() + "': " + what);
}

int checked_axis(const TilingContext& ctx, int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    fail_tiling(ctx, "axis " + std::to_string(axis) + " is out of range for rank " + std::to_string(rank) +
                         "; correct the attribute");
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

int read_ints(const TilingContext& ctx, int input, int64_t* out, int capacity) {
  const HostTensor& t = ctx.host(input);
  const int64_t n = count_of(t.shape);
  if (n > capacity)
    fail_tiling(ctx, "input " + std::to_string(input) + " has " + std::to_string(n) + " elements, at most " +
                         std::to_string(capacity) + " are possible; check the model");
  if (t.dtype == DType::kInt64) {
    for (int64_t i = 0; i < n; ++i) out[i] = t.as<int64_t>()[i];
  } else if (t.dtype == DType::kInt32) {
    for (int64_t i = 0; i < n; ++i) out[i] = t.as<int32_t>()[i];
  } else {
    fail_tiling(ctx,
                "input " + std::to_string(input) + " must be int64 or int32, got " + name_of(t.dtype) + "; add a Cast");
  }
  return static_cast<int>(n);
}

int64_t read_int(const TilingContext& ctx, int input) {
  int64_t value = 0;
  if (read_ints(ctx, input, &value, 1) != 1)
    fail_tiling(ctx, "input " + std::to_string(input) + " must have one element, got none; check the model");
  return value;
}

Status launch_nothing(const Task&, void* const*, Worker&) { return Status::kOk; }

namespace {
struct EmptyTiling : TilingOf<EmptyTiling> {};
}  // namespace

std::shared_ptr<const Tiling> create_empty_tiling() { return create_tiling<EmptyTiling>(launch_nothing, "empty"); }

int threads_for(const TilingContext& ctx, double operations) {
  constexpr double kForkJoin = 1e7;  // about 0.1 ms on one core
  const int threads = operations < kForkJoin ? 1 : ctx.options().threads;
  ctx.note_threads(threads);
  return threads;
}

}  // namespace asc::cpu
