// Convolution with one input channel per group: every kernel position adds a scaled input line to an output line.
#include <algorithm>

#include "backends/cpu/conv.h"
#include "backends/cpu/vec_table.h"

namespace asc::cpu {
namespace {

struct DepthwiseConv : TilingOf<DepthwiseConv> {
  ConvShape shape;
};

void add_scaled(float factor, const float* x, float* y, int64_t n) {
  vec_table().axpy(factor, x, y, static_cast<size_t>(n));
}
void add_scaled(double factor, const double* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

// Adds the contribution of one line of the input at every kernel position of one kernel line.
template <typename T>
void add_line(const ConvShape& s, const T* line, const T* weight, T* y) {
  for (int64_t k = 0; k < s.kernel[2]; ++k) {
    const int64_t first = s.position(2, 0, k), stride = s.stride[2];
    const IndexRange r = inside_line(s, 0, s.output[2], k);
    if (r.low == r.high) continue;
    if (stride == 1) {
      add_scaled(weight[k], line + first + r.low, y + r.low, r.high - r.low);
    } else {
      for (int64_t i = r.low; i < r.high; ++i) y[i] += weight[k] * line[first + i * stride];
    }
  }
}

template <typename T>
void convolve_plane(const ConvShape& s, const T* plane, const T* weight, T bias, T* y) {
  for (int64_t z = 0; z < s.output[0]; ++z) {
    for (int64_t row = 0; row < s.output[1]; ++row, y += s.output[2]) {
      std::fill(y, y + s.output[2], bias);
      const IndexRange rows_z = inside_kernel(s, 0, z), rows_y = inside_kernel(s, 1, row);
      for (int64_t kz = rows_z.low; kz < rows_z.high; ++kz)
        for (int64_t ky = rows_y.low; ky < rows_y.high; ++ky)
          add_line(s, plane + (s.position(0, z, kz) * s.input[1] + s.position(1, row, ky)) * s.input[2],
                   weight + (kz * s.kernel[1] + ky) * s.kernel[2], y);
    }
  }
}

template <typename T>
Status launch_depthwise(const Task& task, void* const* slots, Worker&) {
  const ConvShape& s = static_cast<const DepthwiseConv*>(task.tiling)->shape;
  const T *x = task.input<T>(slots, 0), *weight = task.input<T>(slots, 1);
  const T* bias = s.has_bias ? task.input<T>(slots, 2) : nullptr;
  T* y = task.output<T>(slots, 0);
  for (int64_t n = 0; n < s.batch; ++n) {
    for (int64_t c = 0; c < s.out_channels; ++c, y += s.output_size())
      convolve_plane(s, x + (n * s.channels + c / s.group_outputs()) * s.input_size(), weight + c * s.kernel_size(),
                     bias ? bias[c] : T{0}, y);
  }
  return Status::kOk;
}

}  // namespace

template <typename T>
std::shared_ptr<const Tiling> tile_depthwise_conv(const ConvShape& s) {
  auto t = create_tiling<DepthwiseConv>(launch_depthwise<T>, "vector:depthwise");
  t->shape = s;
  return t;
}

template std::shared_ptr<const Tiling> tile_depthwise_conv<float>(const ConvShape&);
template std::shared_ptr<const Tiling> tile_depthwise_conv<double>(const ConvShape&);

}  // namespace asc::cpu
