#include "backends/cpu/bfloat16.h"
#include "backends/cpu/half_adaptor.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/product.h"

namespace asc {
namespace cpu {
namespace {

template <Product (*kMake)(const TilingContext&)>
std::shared_ptr<const Tiling> tile_float(const TilingContext& ctx) {
  return tile_float_product(ctx, kMake(ctx));
}

template <Product (*kMake)(const TilingContext&)>
std::shared_ptr<const Tiling> tile_plain(const TilingContext& ctx) {
  return tile_plain_product(ctx, kMake(ctx));
}

template <Product (*kMake)(const TilingContext&)>
void add_product(KernelRegistry& registry, const char* op) {
  constexpr DTypeSet kPlain =
      DTypeSet(DType::kFloat64) | DType::kInt32 | DType::kUInt32 | DType::kInt64 | DType::kUInt64;
  registry.add(op, DType::kFloat32, tile_float<kMake>);
  registry.add(op, kHalfFloats, tile_half<tile_float<kMake>, 0b010>);
  registry.add(op, kPlain, tile_plain<kMake>);
}

}  // namespace
}  // namespace cpu

void register_matmul_kernels(KernelRegistry& registry) {
  cpu::add_product<cpu::make_matmul_product>(registry, "MatMul");
  cpu::add_product<cpu::make_gemm_product>(registry, "Gemm");
  cpu::register_matmul_nbits(registry);
  cpu::register_grouped_product(registry);
  cpu::register_tree_sums(registry);
  cpu::register_bfloat16_products(registry);
}

}  // namespace asc
