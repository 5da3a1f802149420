// The geometry of DFT and STFT: both are transforms of rows, whose samples lie a step apart.
#pragma once

#include "ops/op.h"

namespace asc {

struct DftGeometry {
  int64_t length = 0;    // of the transform
  int64_t given = 0;     // samples (IRFFT: bins) that the input has of it; zeros follow
  int64_t bins = 0;      // along the axis of the output
  int64_t in_parts = 1;  // 1: real input, 2: complex
  int64_t out_parts = 2;
  bool is_framed = false;  // STFT
  bool is_inverse = false;
  bool is_onesided = false;  // inverse: the input has the first half of a spectrum and the output is real (IRFFT)
  // Row (o, i), o < outer and i < inner, begins at o * outer_step + i * inner_step, in elements.
  int64_t outer = 1, inner = 1;
  int64_t in_outer_step = 0, in_inner_step = 0, in_step = 0;
  int64_t out_outer_step = 0, out_inner_step = 0, out_step = 0;
  bool is_irfft() const { return is_inverse && is_onesided; }
};

// Throw GraphError for operands that do not fit.
DftGeometry dft_geometry(const ShapeContext& ctx, int* axis);  // of the input's dimensions
DftGeometry stft_geometry(const ShapeContext& ctx);            // inner: the frames

}  // namespace asc
