#include "bindings/arrays.h"

#include <array>

namespace asc {

DType dtype_from_name(const std::string& name) {
  for (int i = 1; i < kDTypeCount; ++i)
    if (name == name_of(static_cast<DType>(i))) return static_cast<DType>(i);
  throw UnsupportedError("[graph] element type '" + name +
                         "' is not supported; use float32, float64, float16, bfloat16, bool or an integer type");
}

DType dtype_of(const py::dtype& dtype) {
  const auto pick = [](ssize_t size, DType one, DType two, DType four, DType eight) {
    return size == 1 ? one : size == 2 ? two : size == 4 ? four : size == 8 ? eight : DType::kUndefined;
  };
  constexpr DType kNone = DType::kUndefined;
  switch (dtype.kind()) {
    case 'b':
      return DType::kBool;
    case 'i':
      return pick(dtype.itemsize(), DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64);
    case 'u':
      return pick(dtype.itemsize(), DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64);
    case 'f':
      return pick(dtype.itemsize(), kNone, DType::kFloat16, DType::kFloat32, DType::kFloat64);
    default:
      return dtype.itemsize() == 2 && py::str(dtype.attr("name")).cast<std::string>() == "bfloat16" ? DType::kBFloat16
                                                                                                    : kNone;
  }
}

bool is_usable(const py::array& array, DType expected) {
  constexpr int kNeeded = py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_ | py::detail::npy_api::NPY_ARRAY_ALIGNED_;
  if ((array.flags() & kNeeded) != kNeeded || array.ndim() > kMaxRank) return false;
  const py::dtype dtype = array.dtype();
  const char order = dtype.byteorder();
  return (order == '=' || order == '|') && dtype_of(dtype) == expected;
}

TensorView view_of(const py::array& array, DType dtype) {
  TensorView v;
  v.dtype = dtype;
  v.data = const_cast<void*>(array.data());
  for (ssize_t i = 0; i < array.ndim(); ++i) v.shape.push_back(array.shape(i));
  return v;
}

PyObject* descriptor_of(DType dtype) {
  static const char* const kFormats[kDTypeCount] = {"",   "f4", "f8", "f2", "u2", "i1", "u1",
                                                    "i2", "u2", "i4", "u4", "i8", "u8", "?"};
  static std::array<PyObject*, kDTypeCount> dtypes{};  // made once, under the GIL, kept for the process
  PyObject*& known = dtypes[static_cast<int>(dtype)];
  if (!known) known = py::dtype(kFormats[static_cast<int>(dtype)]).release().ptr();
  return known;
}

py::object make_array(DType dtype, const Shape& shape) {
  std::array<Py_intptr_t, kMaxRank> dims{};
  for (int i = 0; i < shape.rank(); ++i) dims[i] = shape[i];
  const auto& numpy = py::detail::npy_api::get();
  PyObject* array = numpy.PyArray_NewFromDescr_(numpy.PyArray_Type_, py::handle(descriptor_of(dtype)).inc_ref().ptr(),
                                                shape.rank(), dims.data(), nullptr, nullptr, 0, nullptr);
  if (!array) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(array);
}

py::array make_array(const TensorView& view, std::shared_ptr<const Buffer> buffer) {
  using Owner = std::shared_ptr<const Buffer>;
  py::capsule base(new Owner(std::move(buffer)), [](void* p) { delete static_cast<Owner*>(p); });
  std::array<ssize_t, kMaxRank> dims{};
  for (int i = 0; i < view.shape.rank(); ++i) dims[i] = view.shape[i];
  return py::array(py::reinterpret_borrow<py::dtype>(descriptor_of(view.dtype)),
                   std::vector<ssize_t>(dims.begin(), dims.begin() + view.shape.rank()), view.data, base);
}

}  // namespace asc
