// Transpose, DepthToSpace, SpaceToDepth: permutations of dimensions.
#include "backends/cpu/copy_nest.h"
#include "backends/cpu/movement.h"

namespace asc::cpu {
namespace {

// Output dimension i is input dimension perm[i].
std::shared_ptr<const Tiling> create_permutation(size_t element_bytes, const int64_t* dims, const int* perm, int rank) {
  int64_t strides[kMaxRank];
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= dims[i];
  }
  CopyNest nest(element_bytes);
  int64_t out_stride = stride;
  for (int i = 0; i < rank; ++i) {
    const int64_t n = dims[perm[i]];
    if (n > 0) out_stride /= n;
    nest.add(n, strides[perm[i]], out_stride);
  }
  return nest.create_copy_tiling();
}

std::shared_ptr<const Tiling> tile_transpose(const TilingContext& ctx) {
  const Shape& x = ctx.input(0);
  const int rank = x.rank();
  const auto& attribute = ctx.attributes().get_ints("perm");
  int perm[kMaxRank];
  unsigned seen = 0;
  if (!attribute.empty() && static_cast<int>(attribute.size()) != rank)
    fail_tiling(ctx, "perm has " + std::to_string(attribute.size()) + " entries for rank " + std::to_string(rank) +
                         "; correct the attribute");
  for (int i = 0; i < rank; ++i) {
    perm[i] = attribute.empty() ? rank - 1 - i : checked_axis(ctx, attribute[i], rank);
    seen |= 1u << perm[i];
  }
  if (seen != (1u << rank) - 1) fail_tiling(ctx, "perm repeats an axis; correct the attribute");
  return create_permutation(size_of(ctx.dtype(0)), x.begin(), perm, rank);
}

int64_t checked_block(const TilingContext& ctx, const Shape& x) {
  const int64_t block = ctx.attr("blocksize", 0);
  if (x.rank() != 4 || block < 1)
    fail_tiling(ctx, "needs rank 4 and a positive blocksize, got " + x.text() + " and " + std::to_string(block) +
                         "; correct the model");
  return block;
}

std::shared_ptr<const Tiling> tile_depth_to_space(const TilingContext& ctx) {
  const Shape& x = ctx.input(0);
  const int64_t b = checked_block(ctx, x);
  if (x[1] % (b * b) != 0) fail_tiling(ctx, "channels of " + x.text() + " do not divide by blocksize^2; correct it");
  const int64_t c = x[1] / (b * b);
  const bool is_crd = ctx.attributes().get_string("mode", "DCR") == "CRD";
  const int64_t dcr_dims[] = {x[0], b, b, c, x[2], x[3]}, crd_dims[] = {x[0], c, b, b, x[2], x[3]};
  constexpr int kDcr[] = {0, 3, 4, 1, 5, 2}, kCrd[] = {0, 1, 4, 2, 5, 3};
  return create_permutation(size_of(ctx.dtype(0)), is_crd ? crd_dims : dcr_dims, is_crd ? kCrd : kDcr, 6);
}

std::shared_ptr<const Tiling> tile_space_to_depth(const TilingContext& ctx) {
  const Shape& x = ctx.input(0);
  const int64_t b = checked_block(ctx, x);
  if (x[2] % b != 0 || x[3] % b != 0)
    fail_tiling(ctx, "height and width of " + x.text() + " do not divide by blocksize; correct it");
  const int64_t dims[] = {x[0], x[1], x[2] / b, b, x[3] / b, b};
  constexpr int kPerm[] = {0, 3, 5, 1, 2, 4};
  return create_permutation(size_of(ctx.dtype(0)), dims, kPerm, 6);
}

}  // namespace

void register_transpose(KernelRegistry& registry) {
  registry.add("Transpose", kAnyType, tile_transpose);
  registry.add("DepthToSpace", kAnyType, tile_depth_to_space);
  registry.add("SpaceToDepth", kAnyType, tile_space_to_depth);
}

}  // namespace asc::cpu
