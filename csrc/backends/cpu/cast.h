// Conversion of element types.
#pragma once

#include <cstddef>

#include "base/dtype.h"

namespace asc {

// Converts n contiguous elements. Floats to integers truncate; what does not fit, NaN included, becomes the smallest
// int32 or int64 cut to the target's width, as x86 and NumPy give. Floats round to nearest even. Anything but zero is
// true.
using CastRow = void (*)(const void* x, void* y, size_t n);

// Null where either type is kUndefined.
CastRow cast_row(DType from, DType to);

}  // namespace asc
