// GlobalAveragePool and GlobalMaxPool: one reduction per channel.
#include <limits>

#include "backends/cpu/half_adaptor.h"
#include "backends/cpu/nn.h"
#include "backends/cpu/tiling_base.h"
#include "backends/cpu/vec_table.h"

namespace asc::cpu {
namespace {

struct GlobalPool : TilingOf<GlobalPool> {
  int64_t planes = 0, size = 0;
};

float average_of(const float* x, int64_t n) {
  return vec_table().sum(x, static_cast<size_t>(n)) / static_cast<float>(n);
}
double average_of(const double* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum / static_cast<double>(n);
}
float max_of(const float* x, int64_t n) { return vec_table().max_of(x, static_cast<size_t>(n)); }
double max_of(const double* x, int64_t n) {
  double best = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < n; ++i) best = x[i] > best || x[i] != x[i] ? x[i] : best;
  return best;
}

template <typename T, T (*kReduce)(const T*, int64_t)>
Status launch_global(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const GlobalPool*>(task.tiling);
  const T* x = task.input<T>(slots, 0);
  T* y = task.output<T>(slots, 0);
  for (int64_t i = 0; i < t.planes; ++i) y[i] = kReduce(x + i * t.size, t.size);
  return Status::kOk;
}

template <typename T, T (*kReduce)(const T*, int64_t)>
std::shared_ptr<const Tiling> tile_global(const TilingContext& ctx) {
  const Shape& x = ctx.input(0);
  auto t = create_tiling<GlobalPool>(launch_global<T, kReduce>, "vector:rows");
  t->planes = x.span_of(0, 2);
  t->size = x.span_of(2, x.rank());
  return t;
}

template <float (*kFloat)(const float*, int64_t), double (*kDouble)(const double*, int64_t)>
void add_global(KernelRegistry& registry, const char* op) {
  registry.add(op, DType::kFloat32, tile_global<float, kFloat>);
  registry.add(op, kHalfFloats, tile_half<tile_global<float, kFloat>, 0>);
  registry.add(op, DType::kFloat64, tile_global<double, kDouble>);
}

}  // namespace

void register_global_pool(KernelRegistry& registry) {
  add_global<average_of, average_of>(registry, "GlobalAveragePool");
  add_global<max_of, max_of>(registry, "GlobalMaxPool");
}

}  // namespace asc::cpu
