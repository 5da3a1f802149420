// What the convolutions by oneDNN share.
#pragma once

#include "backends/cpu/conv.h"
#include "backends/cpu/onednn.h"

#if ASC_HAVE_ONEDNN

namespace asc::cpu {

inline dnnl::memory::dims spatial_dims(const ConvShape& s, const int64_t* axes, int64_t offset = 0) {
  dnnl::memory::dims d;
  for (int i = kWindowAxes - s.spatial; i < kWindowAxes; ++i) d.push_back(axes[i] + offset);
  return d;
}

inline dnnl::memory::dims with_spatial(dnnl::memory::dims front, const ConvShape& s, const int64_t* axes) {
  const dnnl::memory::dims back = spatial_dims(s, axes);
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

inline dnnl::memory::dims weight_dims(const ConvShape& s) {
  return s.groups == 1 ? with_spatial({s.out_channels, s.channels}, s, s.kernel)
                       : with_spatial({s.groups, s.group_outputs(), s.group_channels()}, s, s.kernel);
}

// Rows as they lie.
inline dnnl::memory::desc plain_desc(const dnnl::memory::dims& dims, dnnl::memory::data_type type) {
  dnnl::memory::dims strides(dims.size(), 1);
  for (size_t i = dims.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * dims[i];
  return dnnl::memory::desc(dims, type, strides);
}

// Reserves so many bytes of a workspace; returns where they begin.
inline size_t take(size_t* total, size_t bytes) {
  const size_t offset = *total;
  *total += round_up(bytes);
  return offset;
}

}  // namespace asc::cpu

#endif
