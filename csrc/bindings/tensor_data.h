// What DLPack's form of a tensor says in our terms, and writing to one.
#pragma once

#include "base/tensor.h"
#include "bindings/exchange.h"

namespace asc::dlpack {

// kUndefined where we do not have it.
DType dtype_of(const Type& type);
// Throws UnsupportedError for types that DLPack does not have.
Type type_of(DType dtype);

// Whether elements lie in the order of the axes, without gaps.
bool is_contiguous(const TensorData& t);
inline void* address_of(const TensorData& t) { return static_cast<char*>(t.data) + t.byte_offset; }

// Writes elements in the order of the axes to where the tensor has them. `from` may not overlap it.
void copy_into(const TensorData& to, const void* from, size_t element_bytes);

}  // namespace asc::dlpack
