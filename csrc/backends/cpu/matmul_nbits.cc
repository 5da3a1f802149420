// MatMulNBits: float32 rows times weights in blocks of codes (nbits_gemm.h). Panels of columns are shared out to
// threads and, where there are few of them, rows as well.
#include <algorithm>

#include "backends/cpu/nbits_gemm.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/product.h"
#include "base/hash.h"

namespace asc::cpu {
namespace {

struct NBitsProduct : TilingOf<NBitsProduct> {
  NBitsWeights weights;
  int64_t m = 0;
  bool has_zeros = false, zeros_are_codes = false;
  int threads = 1;
  size_t packed_here = 0;  // in the workspace, behind the sums of a
};

void pack(const NBitsProduct& t, const void* codes, const void* scales, const void* zeros, void* packed) {
  pack_nbits(t.weights, static_cast<const uint8_t*>(codes), static_cast<const float*>(scales), zeros, t.zeros_are_codes,
             packed);
}

void pack_weights(const Tiling& tiling, const void* const* inputs, void* packed) {
  const auto& t = static_cast<const NBitsProduct&>(tiling);
  pack(t, inputs[kNBitsCodes], inputs[kNBitsScales], t.has_zeros ? inputs[kNBitsZeros] : nullptr, packed);
}

void sum_blocks(const NBitsWeights& w, const float* a, int64_t m, float* sums) {
  for (int64_t i = 0; i < m; ++i, a += w.k)
    for (int64_t begin = 0; begin < w.k; begin += w.block) {
      const int64_t end = std::min(begin + w.block, w.k);
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t p = begin; p < end; ++p) sum += a[p];
      *sums++ = sum;
    }
}

void multiply(const NBitsProduct& t, const NBitsArgs& s) {
  constexpr int64_t kRows = 16;  // of a part, so that it is worth reading the weights
  if (t.threads == 1) {
    for (int64_t i = 0; i < s.b.panels(); ++i) nbits_gemm().multiply(s, i);
    return;
  }
  const int64_t wanted = 4 * t.threads, panels = std::min(s.b.panels(), wanted);
  const int64_t rows = std::clamp<int64_t>(s.m / kRows, 1, (wanted + panels - 1) / panels);
  parallel_for(t.threads, panels * rows, [&](int64_t part) {
    const Part own = part_of(s.b.panels(), 1, panels, part / rows), lines = part_of(s.m, 4, rows, part % rows);
    NBitsArgs piece = s;
    piece.m = lines.end - lines.begin;
    piece.a += lines.begin * t.weights.k;
    piece.c += lines.begin * t.weights.n;
    if (s.sums) piece.sums += lines.begin * t.weights.blocks();
    for (int64_t i = own.begin; i < own.end; ++i) nbits_gemm().multiply(piece, i);
  });
}

Status launch_nbits(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const NBitsProduct*>(task.tiling);
  auto* workspace = static_cast<char*>(task.workspace(slots));
  const void* packed = t.packed_bytes ? task.packed(slots) : workspace + t.packed_here;
  if (!t.packed_bytes)
    pack(t, task.input<void>(slots, kNBitsCodes), task.input<void>(slots, kNBitsScales),
         t.has_zeros ? task.input<void>(slots, kNBitsZeros) : nullptr, workspace + t.packed_here);
  NBitsArgs s;
  s.b = NBitsMatrix::of(packed, t.weights, t.has_zeros);
  s.m = t.m;
  s.a = task.input<float>(slots, kNBitsA);
  s.c = task.output<float>(slots, 0);
  if (task.has_input(slots, kNBitsBias)) s.bias = task.input<float>(slots, kNBitsBias);
  if (nbits_gemm().wants_sums(s.b)) {
    auto* sums = reinterpret_cast<float*>(workspace);
    sum_blocks(t.weights, s.a, t.m, sums);
    s.sums = sums;
  }
  multiply(t, s);
  return Status::kOk;
}

std::shared_ptr<const Tiling> tile_nbits(const TilingContext& ctx) {
  const NBitsWeights w = read_nbits_weights(ctx);
  const Shape& a = ctx.input(kNBitsA);
  if (count_of(a) == 0) return create_empty_tiling();
  auto t = create_tiling<NBitsProduct>(launch_nbits, nbits_gemm().name);
  t->weights = w;
  t->m = a.span_of(0, a.rank() - 1);
  t->has_zeros = ctx.has_input(kNBitsZeros);
  t->zeros_are_codes = t->has_zeros && ctx.dtype(kNBitsZeros) == DType::kUInt8;
  t->threads = threads_for(ctx, 2.0 * static_cast<double>(t->m) * static_cast<double>(w.k) * static_cast<double>(w.n));
  t->packed_here = round_up(static_cast<size_t>(t->m * w.blocks()) * sizeof(float));
  t->workspace_bytes = t->packed_here;
  const size_t bytes = NBitsMatrix::packed_bytes(w, t->has_zeros);
  if (ctx.is_constant(kNBitsCodes) && ctx.is_constant(kNBitsScales) &&
      (!t->has_zeros || ctx.is_constant(kNBitsZeros))) {
    const uint64_t words[] = {0x6E62697473, static_cast<uint64_t>(w.k), static_cast<uint64_t>(w.n),
                              static_cast<uint64_t>(w.block) << 8 | static_cast<uint64_t>(w.bits),
                              static_cast<uint64_t>(t->has_zeros) << 1 | t->zeros_are_codes};
    t->packed_bytes = bytes;
    t->packed_layout = hash_words(words, 5) | 1;
    t->pack = pack_weights;
  } else {
    t->workspace_bytes += bytes;
  }
  return t;
}

}  // namespace

void register_matmul_nbits(KernelRegistry& registry) {
  registry.add("MatMulNBits", DTypeSet(DType::kFloat32), tile_nbits);
}

}  // namespace asc::cpu
