// The geometry of Resize, resolved once: its shape rule and its kernels share it.
#pragma once

#include "ops/op.h"

namespace asc {

struct ResizeAxis {
  int64_t in = 0, out = 0;
  float scale = 1;                   // as given, or out / in
  float roi_begin = 0, roi_end = 1;  // of tf_crop_and_resize, in fractions of the axis
};

struct ResizeGeometry {
  int rank = 0;
  ResizeAxis axes[kMaxRank];
};

// From the host values roi, scales and sizes (inputs 1 to 3) and the attributes. Throws GraphError for malformed
// operands and for axes without elements that should grow.
ResizeGeometry resize_geometry(const ShapeContext& ctx);

// Whether coordinates refer to the region of interest, and what lies outside gets the extrapolation value.
bool crops_to_roi(const ShapeContext& ctx);

}  // namespace asc
