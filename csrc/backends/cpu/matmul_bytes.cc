// QuantizedMatMul (ops/quantized.h): exact products of bytes, scaled and rounded row by row.
#include <algorithm>
#include <limits>

#include "backends/cpu/byte_gemm.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/product.h"
#include "backends/cpu/quantize.h"
#include "backends/cpu/vec_table.h"
#include "base/hash.h"
#include "ops/quantized.h"

namespace asc::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct ByteProduct : TilingOf<ByteProduct> {
  Product product;
  bool x_is_signed = false, w_is_signed = false, y_is_signed = false, rounds = false;
  bool has_column_zeros = false, has_bounds = false;
  float low = -kInfinity, high = kInfinity;
  int64_t scales = 1, matrices = 1;
  int threads = 1;
  int64_t tile = 0;                    // rows of a part
  size_t vectors = 0, part_bytes = 0;  // where parts begin in the workspace
  size_t matrix_bytes() const { return ByteMatrix::packed_bytes(product.k, product.n); }
};

void pack_matrices(const Tiling& tiling, const void* const* inputs, void* packed) {
  const auto& t = static_cast<const ByteProduct&>(tiling);
  const int64_t size = t.product.k * t.product.n;
  for (int64_t i = 0; i < t.matrices; ++i)
    pack_bytes(static_cast<const char*>(inputs[kQuantW]) + i * size, t.w_is_signed,
               {inputs[kQuantWZero], t.has_column_zeros ? 1 : 0}, t.product.k, t.product.n,
               static_cast<char*>(packed) + static_cast<size_t>(i) * t.matrix_bytes());
}

struct Operands {
  const uint8_t* x = nullptr;
  ByteMatrix w;
  const float *scales = nullptr, *bias = nullptr;
  int32_t x_zero = 0;  // as of unsigned bytes
  float y_scale = 1, y_zero = 0;
  char* y = nullptr;
};

// Of `rows` rows from `begin` on, the real results of whole panels of columns.
void multiply_columns(const ByteProduct& t, const Operands& o, int64_t begin, int64_t rows, Part columns,
                      int32_t* row_sums, float* real) {
  ByteGemmArgs a;
  a.m = rows;
  a.a = o.x + begin * t.product.k;
  a.a_is_signed = t.x_is_signed;
  a.a_zeros = &o.x_zero;
  a.row_sums = row_sums;
  a.b = o.w;
  a.column_begin = columns.begin, a.column_end = columns.end;
  a.y = real;
  a.scales = o.scales;
  a.add = o.bias;
  byte_gemm().scaled(a);
}

// `threads`: that share the columns.
void multiply_rows(const ByteProduct& t, const Operands& o, int64_t begin, int64_t rows, int threads, char* workspace) {
  const Product& p = t.product;
  auto* row_sums = reinterpret_cast<int32_t*>(workspace);
  auto* real = t.rounds ? reinterpret_cast<float*>(workspace + round_up(static_cast<size_t>(t.tile) * 4))
                        : reinterpret_cast<float*>(o.y) + begin * p.n;
  if (o.w.has_zeros()) sum_byte_rows(o.x + begin * p.k, t.x_is_signed, rows, p.k, row_sums);
  parallel_for(threads, threads, [&](int64_t i) {
    const Part columns = part_of(p.n, ByteMatrix::kPanelColumns, threads, i);
    if (columns.begin < columns.end) multiply_columns(t, o, begin, rows, columns, row_sums, real);
  });
  const auto count = static_cast<size_t>(rows * p.n);
  if (t.has_bounds) vec_table().clip(real, real, count, t.low, t.high);
  if (t.rounds)
    vec_table().quantize_bytes(real, reinterpret_cast<uint8_t*>(o.y) + begin * p.n, count, o.y_scale, o.y_zero,
                               t.y_is_signed ? -128.0f : 0.0f);
}

Status launch_byte_product(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const ByteProduct*>(task.tiling);
  const Product& p = t.product;
  const auto slot = [&](int i) { return i < task.input_count ? slots[task.operands[i]] : nullptr; };
  auto* workspace = static_cast<char*>(task.workspace(slots));
  const int64_t padded = ByteMatrix::padded_columns(p.n);
  auto* scales = reinterpret_cast<float*>(workspace);
  float* bias = scales + padded;
  std::fill_n(scales, 2 * padded, 0.0f);
  const auto* scale = static_cast<const float*>(slot(kQuantScale));
  for (int64_t i = 0; i < p.n; ++i) scales[i] = scale[t.scales == 1 ? 0 : i];
  if (const void* given = slot(kQuantBias)) std::copy_n(static_cast<const float*>(given), p.n, bias);
  Operands o;
  o.scales = scales, o.bias = bias;
  o.x_zero = zero_at(slot(kQuantXZero), t.x_is_signed ? DType::kInt8 : DType::kUInt8) + (t.x_is_signed ? 128 : 0);
  if (t.rounds) {
    o.y_scale = *static_cast<const float*>(slot(kQuantYScale));
    o.y_zero = static_cast<float>(zero_at(slot(kQuantYZero), t.y_is_signed ? DType::kInt8 : DType::kUInt8));
  }
  char* parts = workspace + t.vectors;
  char* packed_here = parts + static_cast<size_t>(t.threads) * t.part_bytes;
  int64_t last_w = -1;
  for_each_matrix(p, [&](int64_t x, int64_t w, int64_t y) {
    if (last_w != w) {
      const char* packed = packed_here;
      if (t.packed_bytes)
        packed = static_cast<const char*>(task.packed(slots)) +
                 static_cast<size_t>(w / std::max<int64_t>(p.k * p.n, 1)) * t.matrix_bytes();
      else
        pack_bytes(static_cast<const char*>(slot(kQuantW)) + w, t.w_is_signed,
                   {slot(kQuantWZero), t.has_column_zeros ? 1 : 0}, p.k, p.n, packed_here);
      o.w = ByteMatrix::of(packed, p.k, p.n);
      last_w = w;
    }
    o.x = task.input<uint8_t>(slots, kQuantX) + x;
    o.y = task.output<char>(slots, 0) + y * (t.rounds ? 1 : 4);
    const int64_t tiles = (p.m + t.tile - 1) / t.tile;
    if (tiles == 1) return multiply_rows(t, o, 0, p.m, t.threads, parts);
    parallel_for(t.threads, t.threads, [&](int64_t part) {
      const Part own = part_of(tiles, 1, t.threads, part);
      for (int64_t i = own.begin; i < own.end; ++i)
        multiply_rows(t, o, i * t.tile, std::min(t.tile, p.m - i * t.tile), 1,
                      parts + static_cast<size_t>(part) * t.part_bytes);
    });
  });
  return Status::kOk;
}

std::shared_ptr<const Tiling> tile_byte_product(const TilingContext& ctx) {
  constexpr int64_t kTileFloats = int64_t{1} << 15, kRows = 16;
  const Product p = make_matmul_product(ctx);
  if (p.is_empty()) return create_empty_tiling();
  auto t = create_tiling<ByteProduct>(launch_byte_product, byte_gemm().name);
  t->product = p;
  t->x_is_signed = ctx.dtype(kQuantX) == DType::kInt8;
  t->w_is_signed = ctx.dtype(kQuantW) == DType::kInt8;
  t->y_is_signed = ctx.output_dtype(0) == DType::kInt8;
  t->rounds = size_of(ctx.output_dtype(0)) == 1;
  t->has_column_zeros = ctx.has_input(kQuantWZero) && count_of(ctx.input(kQuantWZero)) != 1;
  t->low = static_cast<float>(ctx.attributes().get_float("low", -kInfinity));
  t->high = static_cast<float>(ctx.attributes().get_float("high", kInfinity));
  t->has_bounds = t->low != -kInfinity || t->high != kInfinity;
  t->scales = count_of(ctx.input(kQuantScale));
  if (p.k > 0) t->matrices = count_of(ctx.input(kQuantW)) / (p.k * p.n);
  t->threads = threads_for(ctx, static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k));
  t->tile = std::clamp<int64_t>(kTileFloats / p.n / kRows * kRows, kRows, std::max<int64_t>(p.m, kRows));
  if (t->threads > 1 && p.m >= 2 * kRows * t->threads)
    t->tile = std::min(t->tile, (p.m / t->threads + kRows - 1) / kRows * kRows);
  t->vectors = static_cast<size_t>(2 * ByteMatrix::padded_columns(p.n)) * sizeof(float);
  t->part_bytes = round_up(static_cast<size_t>(t->tile) * 4) +
                  (t->rounds ? round_up(static_cast<size_t>(t->tile * p.n) * sizeof(float)) : 0);
  t->workspace_bytes = t->vectors + static_cast<size_t>(t->threads) * t->part_bytes;
  if (ctx.is_constant(kQuantW) && (!ctx.has_input(kQuantWZero) || ctx.is_constant(kQuantWZero))) {
    t->packed_bytes = static_cast<size_t>(t->matrices) * t->matrix_bytes();
    const uint64_t words[] = {0x6D756C, static_cast<uint64_t>(p.k), static_cast<uint64_t>(p.n), t->w_is_signed,
                              static_cast<uint64_t>(t->has_column_zeros) << 1 | ctx.has_input(kQuantWZero)};
    t->packed_layout = hash_words(words, 5) | 1;
    t->pack = pack_matrices;
  } else {
    t->workspace_bytes += t->matrix_bytes();
  }
  return t;
}

}  // namespace

void register_quantized_matmul(KernelRegistry& registry) {
  registry.add(quantized_matmul_op().name, DType::kInt8 | DType::kUInt8, tile_byte_product);
}

}  // namespace asc::cpu
