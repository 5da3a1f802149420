// Products with constant bfloat16 weights (ops/half.h): by oneDNN on the CPU's instructions for bfloat16, AMX included;
// where these are missing or do not pay, by the float32 kernels on converted weights.
#include <memory>
#include <vector>

#include "backends/cpu/bfloat16.h"
#include "backends/cpu/half_adaptor.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/product.h"
#include "backends/cpu/vec_table.h"
#include "ops/half.h"

namespace asc::cpu {
namespace {

template <Product (*kMake)(const TilingContext&)>
std::shared_ptr<const Tiling> tile_float(const TilingContext& ctx) {
  return tile_float_product(ctx, kMake(ctx));
}

#if ASC_HAVE_ONEDNN

using dnnl::memory;

struct HalfProduct : Tiling {
  Product product;
  size_t scratchpad = 0;  // in the workspace, behind a as bfloat16
  memory::desc plain_b, packed_b;
  std::unique_ptr<OneDnnPrimitive> primitive;
  size_t bytes() const override { return sizeof(HalfProduct) + primitive->bytes(); }
};

Status launch_half(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const HalfProduct*>(task.tiling);
  const Product& p = t.product;
  auto* workspace = static_cast<char*>(task.workspace(slots));
  auto* a = reinterpret_cast<uint16_t*>(workspace);
  round_to_bfloat16(task.input<float>(slots, 0), a, p.m * p.k, t.threads);
  void* const b = t.packed_bytes ? const_cast<void*>(task.packed(slots)) : slots[task.operands[1]];
  void* const data[] = {a, b, task.output<void>(slots, 0), workspace + t.scratchpad,
                        p.has_add ? slots[task.operands[2]] : nullptr};
  return t.primitive->execute(data, worker);
}

void pack_b(const Tiling& tiling, const void* const* inputs, void* packed) {
  const auto& t = static_cast<const HalfProduct&>(tiling);
  reorder_now(t.plain_b, inputs[1], t.packed_b, packed);
}

std::shared_ptr<const Tiling> create(const Product& p) {
  constexpr auto kHalf = memory::data_type::bf16, kFloat = memory::data_type::f32;
  using tag = memory::format_tag;
  const memory::desc a({p.m, p.k}, kHalf, p.trans_a ? tag::ba : tag::ab), c({p.m, p.n}, kFloat, tag::ab);
  const memory::desc bias = p.has_add ? memory::desc({1, p.n}, kFloat, tag::ab) : memory::desc();
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::matmul::primitive_desc pd(onednn_engine(), a, memory::desc({p.k, p.n}, kHalf, tag::any), bias, c, attr);
  if (is_reference(pd)) return nullptr;
  auto t = std::make_shared<HalfProduct>();
  t->launch = launch_half;
  t->implementation = "onednn:bfloat16";
  t->product = p;
  t->plain_b = memory::desc({p.k, p.n}, kHalf, p.trans_b ? tag::ba : tag::ab);
  t->packed_b = pd.weights_desc();
  if (t->packed_b != t->plain_b) {
    t->packed_bytes = t->packed_b.get_size();
    t->packed_layout = layout_hash(t->packed_b) ^ uint64_t { p.trans_b } << 63;
    t->pack = pack_b;
  }
  t->scratchpad = round_up(static_cast<size_t>(p.m * p.k) * sizeof(uint16_t));
  t->workspace_bytes = t->scratchpad + pd.scratchpad_desc().get_size();
  std::vector<OneDnnPrimitive::Argument> arguments = {{DNNL_ARG_SRC, a},
                                                      {DNNL_ARG_WEIGHTS, t->packed_b},
                                                      {DNNL_ARG_DST, c},
                                                      {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}};
  if (p.has_add) arguments.push_back({DNNL_ARG_BIAS, bias});
  t->primitive = std::make_unique<OneDnnPrimitive>(dnnl::matmul(pd), std::move(arguments));
  return t;
}

// Null where oneDNN refuses or would be slower.
std::shared_ptr<const Tiling> try_onednn(const TilingContext& ctx, const Product& p) {
  const double operations = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  constexpr double kFewOperations = 2e5;  // as measured
  if (!multiplies_bfloat16(ctx) || !ctx.is_constant(1) || operations < kFewOperations) return nullptr;
  if (p.batch_rank > 0 || p.alpha != 1 || (p.has_add && (p.beta != 1 || p.add_row != 0 || p.add_column != 1)))
    return nullptr;
  const int threads = threads_for(ctx, operations);
  const OpenMpThreads set(threads);
  try {
    return create(p);
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

#else

std::shared_ptr<const Tiling> try_onednn(const TilingContext&, const Product&) { return nullptr; }

#endif

template <Product (*kMake)(const TilingContext&)>
std::shared_ptr<const Tiling> tile(const TilingContext& ctx) {
  const Product p = kMake(ctx);
  if (p.is_empty() || p.k == 0) return create_half_tiling(ctx, tile_float<kMake>, 0b010);
  if (auto t = try_onednn(ctx, p)) return t;
  return create_half_tiling(ctx, tile_float<kMake>, 0b010);
}

}  // namespace

bool multiplies_bfloat16([[maybe_unused]] const TilingContext& ctx) {
#if ASC_HAVE_ONEDNN && defined(__x86_64__)
  return ctx.options().use_onednn && current_isa() == Isa::kV4 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

void round_to_bfloat16(const float* x, uint16_t* y, int64_t n, int threads) {
  const int64_t parts = n < int64_t{1} << 16 ? 1 : threads;
  parallel_for(threads, parts, [&](int64_t i) {
    const Part own = part_of(n, 64, parts, i);
    vec_table().float32_to_bfloat16(x + own.begin, y + own.begin, static_cast<size_t>(own.end - own.begin));
  });
}

void register_bfloat16_products(KernelRegistry& registry) {
  registry.add(bfloat16_product_op("MatMul")->name, DType::kFloat32, tile<make_matmul_product>);
  registry.add(bfloat16_product_op("Gemm")->name, DType::kFloat32, tile<make_gemm_product>);
}

}  // namespace asc::cpu
