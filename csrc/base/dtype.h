// Element types of tensors, with the names and sizes that NumPy and ONNX users know.
#pragma once

#include <cstddef>
#include <cstdint>

namespace asc {

enum class DType : uint8_t {
  kUndefined,
  kFloat32,
  kFloat64,
  kFloat16,
  kBFloat16,
  kInt8,
  kUInt8,
  kInt16,
  kUInt16,
  kInt32,
  kUInt32,
  kInt64,
  kUInt64,
  kBool,
};

constexpr int kDTypeCount = 14;

constexpr size_t size_of(DType t) {
  constexpr size_t kSizes[kDTypeCount] = {0, 4, 8, 2, 2, 1, 1, 2, 2, 4, 4, 8, 8, 1};
  return kSizes[static_cast<int>(t)];
}

constexpr const char* name_of(DType t) {
  constexpr const char* kNames[kDTypeCount] = {"undefined", "float32", "float64", "float16", "bfloat16",
                                               "int8",      "uint8",   "int16",   "uint16",  "int32",
                                               "uint32",    "int64",   "uint64",  "bool"};
  return kNames[static_cast<int>(t)];
}

constexpr bool is_float(DType t) { return t >= DType::kFloat32 && t <= DType::kBFloat16; }
constexpr bool is_integer(DType t) { return t >= DType::kInt8 && t <= DType::kUInt64; }
constexpr bool is_signed_integer(DType t) {
  return t == DType::kInt8 || t == DType::kInt16 || t == DType::kInt32 || t == DType::kInt64;
}

// A set of element types, one bit each.
class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  constexpr DTypeSet(DType t) : bits_(1u << static_cast<int>(t)) {}
  constexpr bool contains(DType t) const { return (bits_ >> static_cast<int>(t)) & 1u; }
  constexpr bool is_empty() const { return bits_ == 0; }
  constexpr DTypeSet operator|(DTypeSet o) const { return DTypeSet(bits_ | o.bits_); }

 private:
  constexpr explicit DTypeSet(uint32_t bits) : bits_(bits) {}
  uint32_t bits_ = 0;
};

constexpr DTypeSet operator|(DType a, DType b) { return DTypeSet(a) | DTypeSet(b); }

constexpr DTypeSet kSignedIntegers =
    DTypeSet(DType::kInt8) | DTypeSet(DType::kInt16) | DTypeSet(DType::kInt32) | DTypeSet(DType::kInt64);
constexpr DTypeSet kUnsignedIntegers =
    DTypeSet(DType::kUInt8) | DTypeSet(DType::kUInt16) | DTypeSet(DType::kUInt32) | DTypeSet(DType::kUInt64);
constexpr DTypeSet kIntegers = kSignedIntegers | kUnsignedIntegers;
constexpr DTypeSet kWideFloats = DTypeSet(DType::kFloat32) | DTypeSet(DType::kFloat64);
constexpr DTypeSet kHalfFloats = DTypeSet(DType::kFloat16) | DTypeSet(DType::kBFloat16);
constexpr DTypeSet kFloats = kWideFloats | kHalfFloats;
constexpr DTypeSet kNumbers = kFloats | kIntegers;
constexpr DTypeSet kAnyType = kNumbers | DTypeSet(DType::kBool);

}  // namespace asc
