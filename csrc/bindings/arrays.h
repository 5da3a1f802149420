// NumPy arrays to tensor views and back.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>
#include <string>

#include "base/tensor.h"

namespace asc {

namespace py = pybind11;

// Throws GraphError for an unknown name.
DType dtype_from_name(const std::string& name);
// kUndefined where NumPy's type has no counterpart. bfloat16 (ml_dtypes) is recognised by its name.
DType dtype_of(const py::dtype& dtype);

// True when the array can be used in place: C-contiguous, aligned, native byte order, of type `expected`.
bool is_usable(const py::array& array, DType expected);
// A view of a usable array. The array must be kept alive by the caller.
TensorView view_of(const py::array& array, DType dtype);

// NumPy's own type object of a dtype, borrowed; bfloat16: uint16.
PyObject* descriptor_of(DType dtype);
// A new array with memory of NumPy's.
py::object make_array(DType dtype, const Shape& shape);
// A new array over `buffer`, which it keeps alive. bfloat16 comes back as uint16; Python gives it its type.
py::array make_array(const TensorView& view, std::shared_ptr<const Buffer> buffer);

}  // namespace asc
