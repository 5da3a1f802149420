#include "bindings/tensor_data.h"

#include <cstring>
#include <string>

#include "base/error.h"

namespace asc::dlpack {
namespace {

struct Known {
  DType dtype;
  Type type;
};
constexpr Known kTypes[] = {
    {DType::kFloat32, {kFloat, 32, 1}},   {DType::kFloat64, {kFloat, 64, 1}}, {DType::kFloat16, {kFloat, 16, 1}},
    {DType::kBFloat16, {kBFloat, 16, 1}}, {DType::kInt8, {kInt, 8, 1}},       {DType::kUInt8, {kUInt, 8, 1}},
    {DType::kInt16, {kInt, 16, 1}},       {DType::kUInt16, {kUInt, 16, 1}},   {DType::kInt32, {kInt, 32, 1}},
    {DType::kUInt32, {kUInt, 32, 1}},     {DType::kInt64, {kInt, 64, 1}},     {DType::kUInt64, {kUInt, 64, 1}},
    {DType::kBool, {kBool, 8, 1}},
};

// The axes from `axis` on; returns where the elements go on.
const char* copy_axes(const TensorData& to, int axis, char* at, const char* from, size_t bytes) {
  if (axis == to.ndim) {
    std::memcpy(at, from, bytes);
    return from + bytes;
  }
  const auto count = static_cast<size_t>(to.shape[axis]);
  if (axis == to.ndim - 1 && to.strides[axis] == 1) {
    std::memcpy(at, from, count * bytes);
    return from + count * bytes;
  }
  const int64_t step = to.strides[axis] * static_cast<int64_t>(bytes);
  for (size_t i = 0; i < count; ++i, at += step) from = copy_axes(to, axis + 1, at, from, bytes);
  return from;
}

}  // namespace

DType dtype_of(const Type& t) {
  for (const Known& known : kTypes)
    if (t.code == known.type.code && t.bits == known.type.bits && t.lanes == 1) return known.dtype;
  return DType::kUndefined;
}

Type type_of(DType dtype) {
  for (const Known& known : kTypes)
    if (known.dtype == dtype) return known.type;
  throw UnsupportedError(std::string("[torch] results of type ") + name_of(dtype) + " have no form in DLPack");
}

bool is_contiguous(const TensorData& t) {
  if (!t.strides) return true;
  int64_t expected = 1;
  for (int i = t.ndim - 1; i >= 0; --i) {
    if (t.shape[i] != 1 && t.strides[i] != expected) {
      for (int k = 0; k < t.ndim; ++k)
        if (t.shape[k] == 0) return true;
      return false;
    }
    expected *= t.shape[i];
  }
  return true;
}

void copy_into(const TensorData& to, const void* from, size_t element_bytes) {
  int64_t count = 1;
  for (int i = 0; i < to.ndim; ++i) count *= to.shape[i];
  if (count == 0) return;
  char* const at = static_cast<char*>(address_of(to));
  if (is_contiguous(to))
    std::memcpy(at, from, static_cast<size_t>(count) * element_bytes);
  else
    copy_axes(to, 0, at, static_cast<const char*>(from), element_bytes);
}

}  // namespace asc::dlpack
