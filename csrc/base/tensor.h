// A tensor in host memory: an immutable value that shares its buffer (constants, host values), and the plain view
// that describes a caller's buffer.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "base/shape.h"

namespace asc {

constexpr size_t kAlignment = 64;  // bytes; of every buffer that we allocate

constexpr size_t round_up(size_t n, size_t to = kAlignment) { return (n + to - 1) / to * to; }

// 64-byte aligned host memory: allocated here, or a part of something that it keeps alive, such as a mapped file.
class Buffer {
 public:
  // Throws OutOfMemoryError. The contents are uninitialised.
  explicit Buffer(size_t bytes) : data_(std::aligned_alloc(kAlignment, round_up(bytes ? bytes : 1))), bytes_(bytes) {
    if (!data_) throw OutOfMemoryError("[buffer] host memory exhausted: asked " + std::to_string(bytes) + " bytes");
  }
  // Memory of `owner`, which must not change while the buffer lives.
  Buffer(std::shared_ptr<const void> owner, const void* data, size_t bytes)
      : data_(const_cast<void*>(data)), bytes_(bytes), owner_(std::move(owner)) {}
  ~Buffer() {
    if (!owner_) std::free(data_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void* data_;
  size_t bytes_;
  std::shared_ptr<const void> owner_;  // null: allocated here
};

struct HostTensor {
  DType dtype = DType::kUndefined;
  Shape shape;
  std::shared_ptr<const Buffer> buffer;

  static HostTensor allocate(DType dtype, const Shape& shape) {
    return {dtype, shape, std::make_shared<const Buffer>(shape.num_elements() * size_of(dtype))};
  }
  template <typename T>
  static HostTensor from(DType dtype, const Shape& shape, const std::vector<T>& values) {
    HostTensor t = allocate(dtype, shape);
    if (!values.empty()) std::memcpy(t.mutable_data(), values.data(), values.size() * sizeof(T));
    return t;
  }

  const void* data() const { return buffer->data(); }
  // Only for whoever has just allocated it.
  void* mutable_data() { return const_cast<Buffer&>(*buffer).data(); }
  size_t bytes() const { return static_cast<size_t>(shape.num_elements()) * size_of(dtype); }
  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data());
  }
  bool same_value(const HostTensor& o) const {
    return dtype == o.dtype && shape == o.shape && (buffer == o.buffer || std::memcmp(data(), o.data(), bytes()) == 0);
  }
};

// Elements of an int32 or int64 tensor as int64. Throws GraphError for other types.
inline std::vector<int64_t> int_values(const HostTensor& t) {
  const int64_t n = t.shape.num_elements();
  std::vector<int64_t> v(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    if (t.dtype == DType::kInt64)
      v[i] = t.as<int64_t>()[i];
    else if (t.dtype == DType::kInt32)
      v[i] = t.as<int32_t>()[i];
    else
      throw GraphError(std::string("[tensor] expected int64 or int32 values, got ") + name_of(t.dtype));
  }
  return v;
}

// A contiguous, C-ordered buffer that somebody else owns.
struct TensorView {
  DType dtype = DType::kUndefined;
  Shape shape;
  void* data = nullptr;
};

}  // namespace asc
