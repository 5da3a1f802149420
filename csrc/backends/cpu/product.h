// The geometry of MatMul and Gemm: a batch of c[m, n] = alpha * op(a)·op(b) + beta * add. Chosen implementations are
// in product_float.cc (float32) and product_plain.cc (float64 and integers).
#pragma once

#include <cstdint>
#include <memory>

#include "backends/cpu/tiling_base.h"

namespace asc::cpu {

struct Product {
  int64_t m = 1, n = 1, k = 1;
  bool trans_a = false, trans_b = false;
  float alpha = 1, beta = 1;
  bool has_add = false;
  int64_t add_row = 0, add_column = 0;  // add(i, j) = add[i * add_row + j * add_column]
  // Batch dimensions that are not merged into m, and the elements from one matrix to the next (0: broadcast).
  int batch_rank = 0;
  int64_t batch[kMaxRank] = {}, a_step[kMaxRank] = {}, b_step[kMaxRank] = {};

  int64_t lda() const { return trans_a ? m : k; }
  int64_t ldb() const { return trans_b ? k : n; }
  bool is_empty() const;
};

// Throw GraphError for shapes that infer_shape should have refused.
Product make_matmul_product(const TilingContext& ctx);
Product make_gemm_product(const TilingContext& ctx);

// Calls f(a offset, b offset, c offset), in elements, for each matrix of the batch.
template <typename F>
void for_each_matrix(const Product& p, F f) {
  int64_t index[kMaxRank] = {};
  int64_t a = 0, b = 0, c = 0;
  for (;;) {
    f(a, b, c);
    c += p.m * p.n;
    int d = p.batch_rank - 1;
    for (; d >= 0; --d) {
      a += p.a_step[d];
      b += p.b_step[d];
      if (++index[d] < p.batch[d]) break;
      a -= p.a_step[d] * p.batch[d];
      b -= p.b_step[d] * p.batch[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

// Constant b is input 1.
std::shared_ptr<const Tiling> tile_float_product(const TilingContext& ctx, const Product& product);
std::shared_ptr<const Tiling> tile_plain_product(const TilingContext& ctx, const Product& product);

void register_matmul_nbits(KernelRegistry& registry);
void register_grouped_product(KernelRegistry& registry);
void register_tree_sums(KernelRegistry& registry);

}  // namespace asc::cpu
