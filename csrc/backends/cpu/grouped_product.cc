// GroupedMatMul: each group of rows of a times a matrix of its own, as mixtures of experts have it. Groups are shared
// out to threads.
#include <algorithm>
#include <type_traits>

#include "backends/cpu/blas.h"
#include "backends/cpu/indices.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/product.h"
#include "backends/cpu/small_gemm.h"

namespace asc::cpu {
namespace {

struct GroupedProduct : TilingOf<GroupedProduct> {
  int64_t rows = 0, n = 0, k = 0, groups = 0;
  bool trans_b = false, has_wide_ends = false;
  int threads = 1;
};

template <typename T>
void multiply(const GroupedProduct& t, int64_t m, const T* a, const T* b, T* c) {
  if constexpr (std::is_same_v<T, float>) {
    if (t.trans_b ? prefers_dots(m, t.n, t.k) : prefers_rows(m, t.n, t.k)) {
      SmallGemmArgs s;
      s.m = m, s.n = t.n, s.k = t.k;
      s.a = a, s.a_row = t.k;
      s.b = b, s.ldb = t.trans_b ? t.k : t.n;
      s.c = c, s.ldc = t.n;
      t.trans_b ? small_gemm().dots(s) : small_gemm().rows(s);
      return;
    }
  }
  gemm(false, t.trans_b, m, t.n, t.k, T(1), a, t.k, b, t.trans_b ? t.k : t.n, T(0), c, t.n);
}

template <typename T>
Status launch_grouped(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const GroupedProduct*>(task.tiling);
  const T *a = task.input<T>(slots, 0), *b = task.input<T>(slots, 1);
  const IndexReader ends(task.input<void>(slots, 2), t.has_wide_ends);
  T* c = task.output<T>(slots, 0);
  int64_t last = 0;
  for (int64_t i = 0; i < t.groups; last = ends[i++])
    if (ends[i] < last || ends[i] > t.rows) return fail_index(worker, "GroupedMatMul", ends[i], t.rows + 1);
  parallel_for(t.threads, t.groups, [&](int64_t i) {
    const int64_t first = i ? ends[i - 1] : 0, m = ends[i] - first;
    if (m > 0) multiply(t, m, a + first * t.k, b + i * t.k * t.n, c + first * t.n);
  });
  std::fill(c + last * t.n, c + t.rows * t.n, T(0));
  return Status::kOk;
}

std::shared_ptr<const Tiling> tile_grouped(const TilingContext& ctx) {
  const Shape &a = ctx.input(0), &b = ctx.input(1);
  if (count_of(ctx.output(0)) == 0) return create_empty_tiling();
  const bool is_float = ctx.dtype(0) == DType::kFloat32;
  auto t = create_tiling<GroupedProduct>(is_float ? launch_grouped<float> : launch_grouped<double>, "groups");
  t->trans_b = ctx.attr("transB", 0) != 0;
  t->rows = a[0];
  t->k = a[1];
  t->n = ctx.output(0)[1];
  t->groups = b[0];
  t->has_wide_ends = ctx.dtype(2) == DType::kInt64;
  const double operations = 2.0 * static_cast<double>(t->rows) * static_cast<double>(t->k) * static_cast<double>(t->n);
  t->threads = threads_for(ctx, operations);
  return t;
}

}  // namespace

void register_grouped_product(KernelRegistry& registry) {
  registry.add("GroupedMatMul", DTypeSet(DType::kFloat32) | DType::kFloat64, tile_grouped);
}

}  // namespace asc::cpu
