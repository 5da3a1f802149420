// Resolution of Resize's operands, as ONNX defines them; sizes are rounded as onnxruntime rounds them, in float32.
#include "ops/resize.h"

#include <cmath>

#include "ops/infer.h"

namespace asc {
namespace {

// The elements of a float32 or float64 host value of rank 1.
class HostFloats {
 public:
  HostFloats(const ShapeContext& ctx, int input, const char* what) {
    const HostTensor& t = ctx.host(input);
    if (t.shape.rank() != 1) fail_shape(ctx, message(what, " has shape ", t.shape, "; expected a list"));
    if (t.dtype != DType::kFloat32 && t.dtype != DType::kFloat64)
      fail_unsupported(ctx, message(what, " is ", t.dtype, "; insert a Cast to float32"));
    size_ = t.shape[0];
    is_double_ = t.dtype == DType::kFloat64;
    data_ = t.data();
  }
  int64_t size() const { return size_; }
  float operator[](int64_t i) const {
    return is_double_ ? static_cast<float>(static_cast<const double*>(data_)[i]) : static_cast<const float*>(data_)[i];
  }

 private:
  const void* data_;
  int64_t size_;
  bool is_double_;
};

// The axes that scales, sizes and roi speak of: all of them, or those of attribute `axes`.
int read_axes(const ShapeContext& ctx, int rank, int* axes) {
  const std::vector<int64_t>& list = ctx.attributes().get_ints("axes");
  if (list.empty()) {
    for (int i = 0; i < rank; ++i) axes[i] = i;
    return rank;
  }
  uint32_t seen = 0;
  int count = 0;
  for (int64_t given : list) {
    const int axis = static_cast<int>(normalize_axis(given, rank, ctx));
    if (seen >> axis & 1) fail_shape(ctx, message("axes names axis ", axis, " twice; name each axis once"));
    seen |= 1u << axis;
    axes[count++] = axis;
  }
  return count;
}

void check_count(const ShapeContext& ctx, const char* what, int64_t have, int64_t want) {
  if (have != want)
    fail_shape(ctx, message(what, " has ", have, " entries for input ", ctx.input(0), "; expected ", want));
}

int64_t checked_dim(const ShapeContext& ctx, double dim, int axis) {
  if (!(dim >= 0 && dim <= static_cast<double>(kMaxElements)))
    fail_shape(ctx, message("axis ", axis, " would get a negative or too large size; check scales and sizes"));
  return static_cast<int64_t>(dim);
}

void apply_scales(const ShapeContext& ctx, const int* axes, int count, ResizeGeometry* g) {
  const HostFloats scales(ctx, 2, "scales");
  check_count(ctx, "scales", scales.size(), count);
  for (int i = 0; i < count; ++i) {
    ResizeAxis& a = g->axes[axes[i]];
    a.scale = scales[i];
    if (!(a.scale > 0) || std::isinf(a.scale))
      fail_shape(ctx, message("the scale of axis ", axes[i], " is not a positive number; correct the model"));
    a.out = checked_dim(ctx, std::floor(a.scale * static_cast<float>(a.in)), axes[i]);
  }
}

// One scale for all axes, such that no axis gets larger (smaller) than its size asks for.
void keep_aspect_ratio(const ShapeContext& ctx, const int* axes, int count, bool is_larger, ResizeGeometry* g) {
  float common = 0;
  for (int i = 0; i < count; ++i) {
    const float scale = g->axes[axes[i]].scale;
    common = i == 0 ? scale : is_larger ? std::max(common, scale) : std::min(common, scale);
  }
  for (int i = 0; i < count; ++i) {
    ResizeAxis& a = g->axes[axes[i]];
    a.scale = common;
    a.out = checked_dim(ctx, std::round(common * static_cast<float>(a.in)), axes[i]);
  }
}

void apply_sizes(const ShapeContext& ctx, const int* axes, int count, ResizeGeometry* g) {
  const HostInts sizes(ctx, 3);
  check_count(ctx, "sizes", sizes.size(), count);
  for (int i = 0; i < count; ++i) {
    ResizeAxis& a = g->axes[axes[i]];
    a.out = checked_dim(ctx, static_cast<double>(sizes[i]), axes[i]);
    a.scale = a.in > 0 ? static_cast<float>(a.out) / static_cast<float>(a.in) : 1.0f;
  }
  const std::string_view policy = ctx.attributes().get_string("keep_aspect_ratio_policy", "stretch");
  if (policy == "not_larger" || policy == "not_smaller")
    keep_aspect_ratio(ctx, axes, count, policy == "not_smaller", g);
  else if (policy != "stretch")
    fail_shape(ctx, message("keep_aspect_ratio_policy is '", policy, "'; expected stretch, not_larger or not_smaller"));
}

void apply_roi(const ShapeContext& ctx, const int* axes, int count, ResizeGeometry* g) {
  if (!ctx.has_input(1)) fail_shape(ctx, "tf_crop_and_resize needs roi; connect input 1");
  const HostFloats roi(ctx, 1, "roi");
  check_count(ctx, "roi", roi.size(), 2 * count);
  for (int i = 0; i < count; ++i) {
    ResizeAxis& a = g->axes[axes[i]];
    a.roi_begin = roi[i];
    a.roi_end = roi[count + i];
    if (!std::isfinite(a.roi_begin) || !std::isfinite(a.roi_end))
      fail_shape(ctx, message("roi of axis ", axes[i], " is not finite; correct the operand"));
  }
}

// Exporters give empty lists for what is absent.
bool is_given(const ShapeContext& ctx, int input) {
  return ctx.has_input(input) && ctx.host(input).shape.num_elements() > 0;
}

}  // namespace

bool crops_to_roi(const ShapeContext& ctx) {
  return ctx.attributes().get_string("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize";
}

ResizeGeometry resize_geometry(const ShapeContext& ctx) {
  const Shape& x = ctx.input(0);
  ResizeGeometry g;
  g.rank = x.rank();
  for (int i = 0; i < g.rank; ++i) g.axes[i].in = g.axes[i].out = x[i];
  int axes[kMaxRank];
  const int count = read_axes(ctx, g.rank, axes);
  const bool has_scales = is_given(ctx, 2), has_sizes = is_given(ctx, 3);
  if (has_scales && has_sizes) fail_shape(ctx, "both scales and sizes are given; give one of them");
  if (!has_scales && !has_sizes && count > 0) fail_shape(ctx, "neither scales nor sizes are given; give one of them");
  if (has_scales) apply_scales(ctx, axes, count, &g);
  if (has_sizes) apply_sizes(ctx, axes, count, &g);
  if (crops_to_roi(ctx)) apply_roi(ctx, axes, count, &g);
  for (int i = 0; i < g.rank; ++i)
    if (g.axes[i].in == 0 && g.axes[i].out > 0)
      fail_shape(ctx, message("axis ", i, " of ", x, " is empty and cannot grow to ", g.axes[i].out));
  return g;
}

}  // namespace asc
