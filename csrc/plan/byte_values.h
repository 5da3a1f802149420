// What the passes on bytes share: scales and zero points that are constants, and new values.
#pragma once

#include <cstring>
#include <optional>
#include <string>

#include "plan/builder.h"

namespace asc {

// Of a QuantizeLinear or DequantizeLinear with one scale for all elements.
struct ByteScale {
  float scale = 1;
  int32_t zero = 0;
  DType type = DType::kUInt8;
  ValueId scale_value = kNoValue, zero_value = kNoValue;
  bool operator==(const ByteScale& o) const { return scale == o.scale && zero == o.zero && type == o.type; }
};

inline bool is_byte(DType t) { return t == DType::kInt8 || t == DType::kUInt8; }

inline int32_t byte_at(const HostTensor& t, int64_t i) {
  return t.dtype == DType::kInt8 ? int32_t{t.as<int8_t>()[i]} : t.as<uint8_t>()[i];
}

inline const HostTensor* constant_of(const LevelBuilder& b, ValueId v) {
  return v == kNoValue ? nullptr : b.values[v].constant.get();
}

inline ValueId input_of(const Node& n, size_t i) { return i < n.inputs.size() ? n.inputs[i] : kNoValue; }

// Absent where scale or zero point are no constants of one element, or the values no float32 and bytes.
std::optional<ByteScale> scale_of(const LevelBuilder& b, const Node& n);

// A value named `name` of that type, of which `like` tells the shape where it is not kNoValue.
ValueId add_value(LevelBuilder& b, std::string name, DType type, ValueId like);
ValueId add_constant(LevelBuilder& b, std::string name, HostTensor t);

// A node of that operator, with input and output types.
PlanNode make_node(LevelBuilder& b, const Op& op, std::string name, std::vector<ValueId> inputs, ValueId output);
// p becomes a node of that operator on x, which makes the same value.
void become(LevelBuilder& b, PlanNode& p, const char* op, ValueId x);

}  // namespace asc
