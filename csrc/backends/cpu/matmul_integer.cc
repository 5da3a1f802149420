// MatMulInteger: exact products of bytes. The right-hand matrix is packed once where it is constant.
#include <algorithm>

#include "backends/cpu/byte_gemm.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/product.h"
#include "backends/cpu/quantize.h"
#include "base/hash.h"

namespace asc::cpu {
namespace {

struct MatMulIntegerTiling : TilingOf<MatMulIntegerTiling> {
  Product product;
  bool a_is_signed = false, b_is_signed = false;
  bool has_b_zeros = false;
  bool has_row_zeros = false, has_column_zeros = false;  // one zero point for each row of a, column of b
  int64_t b_matrices = 1;
  int threads = 1;
  size_t matrix_bytes() const { return ByteMatrix::packed_bytes(product.k, product.n); }
};

void pack_matrix(const MatMulIntegerTiling& t, const char* b, const void* zeros, void* packed) {
  pack_bytes(b, t.b_is_signed, {zeros, t.has_column_zeros ? 1 : 0}, t.product.k, t.product.n, packed);
}

void pack_b(const Tiling& tiling, const void* const* inputs, void* packed) {
  const auto& t = static_cast<const MatMulIntegerTiling&>(tiling);
  for (int64_t i = 0; i < t.b_matrices; ++i)
    pack_matrix(t, static_cast<const char*>(inputs[1]) + i * t.product.k * t.product.n,
                t.has_b_zeros ? inputs[3] : nullptr,
                static_cast<char*>(packed) + static_cast<size_t>(i) * t.matrix_bytes());
}

// Zero points of a as the products read them: of unsigned bytes.
void widen_zeros(const MatMulIntegerTiling& t, const void* zeros, int32_t* to) {
  const int64_t count = t.has_row_zeros ? t.product.m : 1;
  for (int64_t i = 0; i < count; ++i) {
    const int zero = !zeros          ? 0
                     : t.a_is_signed ? int{static_cast<const int8_t*>(zeros)[i]}
                                     : int{static_cast<const uint8_t*>(zeros)[i]};
    to[i] = zero + (t.a_is_signed ? 128 : 0);
  }
}

// The product in parts: of rows or, where there are few, of columns.
void multiply(const ByteGemmArgs& s, int threads) {
  constexpr int64_t kRows = 16;  // of a part, so that it is worth reading b
  if (threads == 1) return byte_gemm().sums(s);
  const int64_t parts = 2 * threads;
  const bool by_rows = s.m >= kRows * parts;
  parallel_for(threads, parts, [&](int64_t i) {
    ByteGemmArgs part = s;
    const Part own = by_rows ? part_of(s.m, 4, parts, i) : part_of(s.b.n, ByteMatrix::kPanelColumns, parts, i);
    if (own.begin == own.end) return;
    if (by_rows) {
      part.m = own.end - own.begin;
      part.a += own.begin * s.b.k;
      part.a_zeros += own.begin * s.a_zero_step;
      part.row_sums += own.begin;
      part.c += own.begin * s.b.n;
    } else {
      part.column_begin = own.begin, part.column_end = own.end;
    }
    byte_gemm().sums(part);
  });
}

Status launch_matmul_integer(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const MatMulIntegerTiling*>(task.tiling);
  const Product& p = t.product;
  const auto* a = task.input<uint8_t>(slots, 0);
  const auto* b = task.input<char>(slots, 1);
  auto* workspace = static_cast<char*>(task.workspace(slots));
  auto* zeros = reinterpret_cast<int32_t*>(workspace + (t.packed_bytes ? 0 : t.matrix_bytes()));
  auto* row_sums = zeros + p.m;
  widen_zeros(t, task.has_input(slots, 2) ? task.input<char>(slots, 2) : nullptr, zeros);
  ByteGemmArgs s;
  s.m = p.m;
  s.a_is_signed = t.a_is_signed;
  s.a_zeros = zeros, s.a_zero_step = t.has_row_zeros ? 1 : 0;
  s.row_sums = row_sums;
  int64_t last_b = -1;
  for_each_matrix(p, [&](int64_t a_offset, int64_t b_offset, int64_t c_offset) {
    if (last_b != b_offset) {
      const char* packed = workspace;
      if (t.packed_bytes)
        packed = static_cast<const char*>(task.packed(slots)) +
                 static_cast<size_t>(b_offset / std::max<int64_t>(p.k * p.n, 1)) * t.matrix_bytes();
      else
        pack_matrix(t, b + b_offset, task.has_input(slots, 3) ? task.input<char>(slots, 3) : nullptr, workspace);
      s.b = ByteMatrix::of(packed, p.k, p.n);
      last_b = b_offset;
    }
    s.a = a + a_offset;
    s.c = task.output<int32_t>(slots, 0) + c_offset;
    if (s.b.has_zeros()) sum_byte_rows(s.a, t.a_is_signed, p.m, p.k, row_sums);
    multiply(s, t.threads);
  });
  return Status::kOk;
}

std::shared_ptr<const Tiling> tile_matmul_integer(const TilingContext& ctx) {
  const Product p = make_matmul_product(ctx);
  if (p.is_empty()) return create_empty_tiling();
  auto t = create_tiling<MatMulIntegerTiling>(launch_matmul_integer, byte_gemm().name);
  t->product = p;
  t->a_is_signed = ctx.dtype(0) == DType::kInt8;
  t->b_is_signed = ctx.dtype(1) == DType::kInt8;
  t->has_b_zeros = ctx.has_input(3);
  t->has_row_zeros = ctx.has_input(2) && count_of(ctx.input(2)) != 1;
  t->has_column_zeros = ctx.has_input(3) && count_of(ctx.input(3)) != 1;
  t->threads = threads_for(ctx, static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k));
  if (p.k > 0) t->b_matrices = count_of(ctx.input(1)) / (p.k * p.n);
  t->workspace_bytes = static_cast<size_t>(2 * p.m) * sizeof(int32_t);
  if (ctx.is_constant(1) && (!ctx.has_input(3) || ctx.is_constant(3))) {
    t->packed_bytes = static_cast<size_t>(t->b_matrices) * t->matrix_bytes();
    const uint64_t words[] = {0x6D6D69, static_cast<uint64_t>(p.k), static_cast<uint64_t>(p.n), t->b_is_signed,
                              static_cast<uint64_t>(t->has_column_zeros) << 1 | t->has_b_zeros};
    t->packed_layout = hash_words(words, 5) | 1;
    t->pack = pack_b;
  } else {
    t->workspace_bytes += t->matrix_bytes();
  }
  return t;
}

}  // namespace

void register_matmul_integer(KernelRegistry& registry) {
  registry.add("MatMulInteger", DTypeSet(DType::kInt8) | DType::kUInt8, tile_matmul_integer);
}

}  // namespace asc::cpu
