// MatMul and Gemm.
#include "ops/matmul.h"

#include "ops/infer.h"
#include "ops/type_rules.h"

namespace asc {

void infer_matmul(InferContext& ctx) {
  const Shape& a = ctx.input(0);
  const Shape& b = ctx.input(1);
  if (a.rank() == 0 || b.rank() == 0)
    ctx.fail(message("operands ", a, " and ", b, "; scalars cannot be multiplied so"));
  const bool has_rows = a.rank() > 1, has_columns = b.rank() > 1;
  const int64_t inner = a[a.rank() - 1];
  const int64_t inner_b = has_columns ? b[b.rank() - 2] : b[0];
  if (inner != inner_b)
    ctx.fail(message("operands ", a, " and ", b, ": inner dimensions ", inner, " and ", inner_b, " differ"));
  const int batch_a = std::max(a.rank() - 2, 0), batch_b = std::max(b.rank() - 2, 0);
  const int batch = std::max(batch_a, batch_b);
  Shape& out = ctx.output(0);
  out = Shape();
  for (int i = 0; i < batch; ++i) {
    const int64_t da = i < batch - batch_a ? 1 : a[i - (batch - batch_a)];
    const int64_t db = i < batch - batch_b ? 1 : b[i - (batch - batch_b)];
    if (da != db && da != 1 && db != 1)
      ctx.fail(message("operands ", a, " and ", b, ": batch dimensions ", da, " and ", db, " do not broadcast"));
    out.push_back(da == 1 ? db : da);
  }
  if (has_rows) out.push_back(a[a.rank() - 2]);
  if (has_columns) out.push_back(b[b.rank() - 1]);
  check_size(ctx, out);
}

namespace {

void infer_gemm(InferContext& ctx) {
  check_rank(ctx, 0, 2);
  check_rank(ctx, 1, 2);
  const Shape& a = ctx.input(0);
  const Shape& b = ctx.input(1);
  const int trans_a = flag(ctx, "transA", false), trans_b = flag(ctx, "transB", false);
  const int64_t inner_a = a[1 - trans_a], inner_b = b[trans_b];
  if (inner_a != inner_b)
    ctx.fail(message("operands ", a, " (transA=", trans_a, ") and ", b, " (transB=", trans_b, "): inner dimensions ",
                     inner_a, " and ", inner_b, " differ"));
  const Shape out{a[trans_a], b[1 - trans_b]};
  check_size(ctx, out);
  if (ctx.has_input(2)) check_broadcasts_to(ctx, ctx.input(2), out, "C");
  ctx.set_output(0, out);
}

}  // namespace

void register_matmul_ops(OpRegistry& r) {
  r.add(OpDef("MatMul", 2, 2, infer_matmul, same_type<kNumbers>));
  r.add(OpDef("Gemm", 2, 3, infer_gemm, same_type<kNumbers>));
}

}  // namespace asc
