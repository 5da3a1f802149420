#include "backends/cpu/product.h"

#include <algorithm>

namespace asc::cpu {
namespace {

// Batch dimension d of a matrix stack, counted in the output's batch rank; 1 where the stack has fewer dimensions.
int64_t batch_dim(const Shape& s, int matrix_rank, int d, int batch_rank) {
  const int own = d - (batch_rank - (s.rank() - matrix_rank));
  return own < 0 ? 1 : s[own];
}

void append_batch(Product* p, int64_t dim, int64_t a_step, int64_t b_step) {
  const int last = p->batch_rank - 1;
  // The previous dimension merges with this one where both operands step through them evenly.
  if (last >= 0 && p->a_step[last] == a_step * dim && p->b_step[last] == b_step * dim) {
    p->batch[last] *= dim;
    p->a_step[last] = a_step;
    p->b_step[last] = b_step;
    return;
  }
  p->batch[p->batch_rank] = dim;
  p->a_step[p->batch_rank] = a_step;
  p->b_step[p->batch_rank++] = b_step;
}

void set_batch(Product* p, const Shape& a, int a_rank, const Shape& b, int b_rank) {
  const int rank = std::max(a.rank() - a_rank, b.rank() - b_rank);
  int64_t steps[2][kMaxRank];
  int64_t a_step = p->m * p->k, b_step = p->k * p->n;
  for (int d = rank - 1; d >= 0; --d) {
    const int64_t da = batch_dim(a, a_rank, d, rank), db = batch_dim(b, b_rank, d, rank);
    steps[0][d] = da == 1 ? 0 : a_step;
    steps[1][d] = db == 1 ? 0 : b_step;
    a_step *= da;
    b_step *= db;
  }
  for (int d = 0; d < rank; ++d) {
    const int64_t da = batch_dim(a, a_rank, d, rank), db = batch_dim(b, b_rank, d, rank);
    const int64_t dim = da == 1 ? db : da;
    if (dim != 1) append_batch(p, dim, steps[0][d], steps[1][d]);
  }
}

}  // namespace

bool Product::is_empty() const {
  for (int d = 0; d < batch_rank; ++d)
    if (batch[d] == 0) return true;
  return m == 0 || n == 0;
}

Product make_matmul_product(const TilingContext& ctx) {
  const Shape &a = ctx.input(0), &b = ctx.input(1);
  if (a.rank() == 0 || b.rank() == 0) fail_tiling(ctx, "operands must not be scalars; use Mul");
  const int a_rank = a.rank() == 1 ? 1 : 2, b_rank = b.rank() == 1 ? 1 : 2;
  Product p;
  p.m = a_rank == 1 ? 1 : a[a.rank() - 2];
  p.k = a[a.rank() - 1];
  p.n = b_rank == 1 ? 1 : b[b.rank() - 1];
  if (b[b.rank() - b_rank] != p.k)
    fail_tiling(ctx, "inner dimensions differ: " + a.text() + " and " + b.text() + "; correct the shapes");
  if (b.span_of(0, b.rank() - b_rank) == 1) {
    p.m *= a.span_of(0, a.rank() - a_rank);  // rows of all matrices times the same b
    return p;
  }
  set_batch(&p, a, a_rank, b, b_rank);
  return p;
}

Product make_gemm_product(const TilingContext& ctx) {
  const Shape &a = ctx.input(0), &b = ctx.input(1);
  if (a.rank() != 2 || b.rank() != 2) fail_tiling(ctx, "operands must be matrices: " + a.text() + ", " + b.text());
  Product p;
  p.trans_a = ctx.attr("transA", 0) != 0;
  p.trans_b = ctx.attr("transB", 0) != 0;
  p.alpha = static_cast<float>(ctx.attributes().get_float("alpha", 1.0));
  p.beta = static_cast<float>(ctx.attributes().get_float("beta", 1.0));
  p.m = a[p.trans_a ? 1 : 0];
  p.k = a[p.trans_a ? 0 : 1];
  p.n = b[p.trans_b ? 0 : 1];
  if (b[p.trans_b ? 1 : 0] != p.k)
    fail_tiling(ctx, "inner dimensions differ: " + a.text() + " and " + b.text() + "; correct the shapes");
  if (!ctx.has_input(2) || p.beta == 0) return p;
  const Shape& c = ctx.input(2);
  const int64_t columns = c.rank() >= 1 ? c[c.rank() - 1] : 1, rows = c.rank() == 2 ? c[0] : 1;
  if (c.rank() > 2 || (columns != p.n && columns != 1) || (rows != p.m && rows != 1))
    fail_tiling(ctx, "C " + c.text() + " does not broadcast to the result; correct its shape");
  p.has_add = true;
  p.add_column = columns == p.n ? 1 : 0;
  p.add_row = rows == 1 ? 0 : columns;
  return p;
}

}  // namespace asc::cpu
