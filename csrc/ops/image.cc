// Operators on images and detections: Resize, GridSample and NonMaxSuppression.
#include <array>
#include <tuple>

#include "ops/infer.h"
#include "ops/resize.h"
#include "ops/type_rules.h"

namespace asc {
namespace {

void infer_resize(InferContext& ctx) {
  const ResizeGeometry g = resize_geometry(ctx);
  Shape out;
  for (int i = 0; i < g.rank; ++i) out.push_back(g.axes[i].out);
  check_size(ctx, out);
  ctx.set_output(0, out);
}

// X [batch, channels, spatial...] at the positions of grid [batch, output spatial..., axes], numbers from -1 to 1.
void infer_grid_sample(InferContext& ctx) {
  const Shape &x = ctx.input(0), &grid = ctx.input(1);
  if (x.rank() < 3 || grid.rank() != x.rank() || grid[0] != x[0] || grid[grid.rank() - 1] != x.rank() - 2)
    ctx.fail(message("input ", x, " and grid ", grid, "; expected [n, c, spatial...] and [n, output..., axes]"));
  for (const auto& [name, fallback, known] :
       {std::tuple{"mode", "linear", std::array{"nearest", "linear", "cubic"}},
        std::tuple{"padding_mode", "zeros", std::array{"zeros", "border", "reflection"}}}) {
    const std::string_view given = ctx.attributes().get_string(name, fallback);
    if (std::find(known.begin(), known.end(), given) == known.end())
      ctx.fail(message(name, " is '", given, "'; expected ", known[0], ", ", known[1], " or ", known[2]));
  }
  Shape out{x[0], x[1]};
  for (int i = 1; i < grid.rank() - 1; ++i) out.push_back(grid[i]);
  check_size(ctx, out);
  for (int i = 2; i < x.rank(); ++i)
    if (x[i] == 0 && out.num_elements() > 0) ctx.fail(message("spatial axis ", i, " of ", x, " is empty"));
  ctx.set_output(0, out);
}

DType grid_sample_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  check_type(node, inputs, 0, kFloats);
  check_type(node, inputs, 1, kFloats);
  return inputs[0];
}

DType resize_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  check_type(node, inputs, 1, kFloats);
  check_type(node, inputs, 2, DType::kFloat32);
  check_type(node, inputs, 3, DType::kInt64);
  return inputs[0];
}

// boxes [batch, boxes, 4], scores [batch, classes, boxes], then the optional limits, each one element. At most all
// boxes of each class are selected; the limit of the node tightens the bound.
void infer_non_max_suppression(InferContext& ctx) {
  check_rank(ctx, 0, 3);
  check_rank(ctx, 1, 3);
  const Shape &boxes = ctx.input(0), &scores = ctx.input(1);
  if (boxes[2] != 4 || scores[0] != boxes[0] || scores[2] != boxes[1])
    ctx.fail(message("boxes ", boxes, " and scores ", scores, "; expected [batch, n, 4] and [batch, classes, n]"));
  for (int i = 2; i < 5; ++i) check_single(ctx, i);
  const int64_t mode = ctx.attr("center_point_box", 0);
  if (mode != 0 && mode != 1) ctx.fail(message("center_point_box is ", mode, "; expected 0 or 1"));
  const int64_t limit = ctx.has_input(2) ? std::max<int64_t>(host_int(ctx, 2), 0) : 0;
  const int64_t lists = checked_product(ctx, scores[0], scores[1]);
  const Shape out{checked_product(ctx, lists, std::min(limit, boxes[1])), 3};
  check_size(ctx, out);
  ctx.set_output(0, out);
}

DType non_max_suppression_type(const Node& node, const std::vector<DType>& inputs, int) {
  check_arity(node, inputs);
  check_type(node, inputs, 2, kInt64Type);
  for (size_t i : {0, 1, 3, 4}) check_type(node, inputs, i, DType::kFloat32);
  return DType::kInt64;
}

}  // namespace

void register_image_ops(OpRegistry& r) {
  r.add(OpDef("GridSample", 2, 2, infer_grid_sample, grid_sample_type));
  r.add(OpDef("Resize", 1, 4, infer_resize, resize_type).reads_host({1, 2, 3}));
  r.add(OpDef("NonMaxSuppression", 2, 5, infer_non_max_suppression, non_max_suppression_type)
            .of_kind(OpKind::kDataDependent)
            .reads_host({2}));
}

}  // namespace asc
