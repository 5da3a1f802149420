// MatMul, Gemm, MatMulNBits and GroupedMatMul.
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

void check_count(const ShapeContext& ctx, int i, int64_t wanted, const char* what) {
  if (ctx.has_input(i) && ctx.input(i).num_elements() != wanted)
    fail_shape(ctx, message(what, " have shape ", ctx.input(i), "; expected ", wanted, " of them"));
}

void infer_matmul_nbits(InferContext& ctx) {
  const NBitsWeights w = read_nbits_weights(ctx);
  Shape out = ctx.input(kNBitsA);
  if (out.rank() == 0 || out[out.rank() - 1] != w.k)
    ctx.fail(message("A has shape ", out, "; expected [..., K], where K is ", w.k));
  out[out.rank() - 1] = w.n;
  check_size(ctx, out);
  ctx.set_output(0, out);
}

DType matmul_nbits_type(const Node& node, const std::vector<DType>& inputs, int) {
  constexpr DTypeSet kByte = DTypeSet(DType::kUInt8);
  check_arity(node, inputs);
  check_type(node, inputs, kNBitsA, kFloats);
  check_type(node, inputs, kNBitsCodes, kByte);
  for (size_t i : {kNBitsScales, kNBitsBias}) check_same(node, inputs, i);
  check_type(node, inputs, kNBitsZeros, kByte | kFloats);
  if (is_given(inputs, kNBitsGroups)) fail_type(node, "g_idx is not read; reorder the rows of the weights");
  return inputs[kNBitsA];
}

// Rows ends[i - 1] to ends[i] of a [rows, k] times matrix i of b [groups, k, n], or [groups, n, k] with transB; rows
// behind the last end give zeros.
void infer_grouped_matmul(InferContext& ctx) {
  check_rank(ctx, 0, 2);
  check_rank(ctx, 1, 3);
  check_rank(ctx, 2, 1);
  const Shape &a = ctx.input(0), &b = ctx.input(1), &ends = ctx.input(2);
  const int trans_b = flag(ctx, "transB", false);
  if (a[1] != b[1 + trans_b] || ends[0] != b[0])
    ctx.fail(message("operands ", a, ", ", b, " (transB=", trans_b, ") and ", ends,
                     "; expected [rows, k], [groups, k, n] and [groups]"));
  const Shape out{a[0], b[2 - trans_b]};
  check_size(ctx, out);
  ctx.set_output(0, out);
}

DType grouped_matmul_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  check_type(node, inputs, 0, DTypeSet(DType::kFloat32) | DType::kFloat64);
  check_same(node, inputs, 1);
  check_type(node, inputs, 2, kIndexTypes);
  return inputs[0];
}

}  // namespace

NBitsWeights read_nbits_weights(const ShapeContext& ctx) {
  NBitsWeights w;
  w.k = ctx.attr("K", 0), w.n = ctx.attr("N", 0), w.bits = ctx.attr("bits", 4), w.block = ctx.attr("block_size", 0);
  if (w.bits != 4 && w.bits != 8) fail_unsupported(ctx, message("bits is ", w.bits, "; only 4 and 8 are supported"));
  constexpr int64_t kMaxBlock = int64_t{1} << 30;
  if (w.block < 16 || w.block > kMaxBlock || (w.block & (w.block - 1)) != 0)
    fail_shape(ctx, message("block_size is ", w.block, "; expected a power of two, 16 or more"));
  if (w.k < 1 || w.n < 1 || w.k > kMaxElements / w.n)
    fail_shape(ctx, message("K is ", w.k, " and N is ", w.n, "; expected the size of a matrix"));
  const int64_t codes = checked_product(ctx, checked_product(ctx, w.blocks(), w.block_bytes()), w.n);
  check_count(ctx, kNBitsCodes, codes, "bytes of B");
  check_count(ctx, kNBitsScales, w.blocks() * w.n, "scales");
  check_count(ctx, kNBitsBias, w.n, "biases");
  const bool is_packed = ctx.has_input(kNBitsZeros) && ctx.dtype(kNBitsZeros) == DType::kUInt8;
  check_count(ctx, kNBitsZeros, (is_packed ? w.zero_bytes() : w.blocks()) * w.n, "zero points");
  return w;
}

void register_matmul_ops(OpRegistry& r) {
  r.add(OpDef("MatMul", 2, 2, infer_matmul, same_type<kNumbers>));
  r.add(OpDef("Gemm", 2, 3, infer_gemm, same_type<kNumbers>));
  r.add(OpDef("GroupedMatMul", 3, 3, infer_grouped_matmul, grouped_matmul_type));
  r.add(OpDef("MatMulNBits", 3, 6, infer_matmul_nbits, matmul_nbits_type));
}

}  // namespace asc
