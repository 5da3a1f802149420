#include "plan/byte_values.h"

#include <cmath>

namespace asc {

std::optional<ByteScale> scale_of(const LevelBuilder& b, const Node& n) {
  const HostTensor *scale = constant_of(b, input_of(n, 1)), *zero = constant_of(b, input_of(n, 2));
  if (n.op != "QuantizeLinear" && n.op != "DequantizeLinear") return std::nullopt;
  if (!scale || scale->dtype != DType::kFloat32 || scale->shape.num_elements() != 1) return std::nullopt;
  if (input_of(n, 2) != kNoValue && (!zero || zero->shape.num_elements() != 1)) return std::nullopt;
  if (n.attributes.get_int("block_size", 0) != 0) return std::nullopt;
  const bool is_up = n.op == "DequantizeLinear";
  ByteScale s;
  s.scale = *scale->as<float>();
  s.type = b.values[is_up ? n.inputs[0] : n.outputs[0]].type.dtype;
  if (!is_byte(s.type) || b.values[is_up ? n.outputs[0] : n.inputs[0]].type.dtype != DType::kFloat32)
    return std::nullopt;
  if (!zero && s.type != DType::kUInt8 && !is_up) return std::nullopt;  // an attribute says so
  if (!(s.scale > 0) || !std::isfinite(s.scale)) return std::nullopt;
  if (zero) s.zero = byte_at(*zero, 0);
  s.scale_value = n.inputs[1];
  s.zero_value = input_of(n, 2);
  return s;
}

ValueId add_value(LevelBuilder& b, std::string name, DType type, ValueId like) {
  PlanValue value;
  if (like != kNoValue) value.type = b.values[like].type;
  value.name = std::move(name);
  value.type.dtype = type;
  value.root = static_cast<ValueId>(b.values.size());
  b.values.push_back(std::move(value));
  b.static_shapes.push_back(like == kNoValue ? std::nullopt : b.static_shapes[like]);
  return b.values.back().root;
}

ValueId add_constant(LevelBuilder& b, std::string name, HostTensor t) {
  const ValueId v = add_value(b, std::move(name), t.dtype, kNoValue);
  b.static_shapes[v] = t.shape;
  b.values[v].type.has_rank = true;
  for (int64_t d : t.shape) b.values[v].type.dims.push_back({d, ""});
  b.values[v].constant = std::make_shared<const HostTensor>(std::move(t));
  return v;
}

PlanNode make_node(LevelBuilder& b, const Op& op, std::string name, std::vector<ValueId> inputs, ValueId output) {
  PlanNode p;
  p.op = &op;
  p.number = (*b.next_number)++;
  p.node.op = op.name;
  p.node.name = std::move(name);
  for (size_t i = 0; i < inputs.size(); ++i) {
    p.input_types.push_back(inputs[i] == kNoValue ? DType::kUndefined : b.values[inputs[i]].type.dtype);
    if (constant_of(b, inputs[i])) p.constant_inputs |= uint64_t{1} << i;
  }
  p.node.inputs = std::move(inputs);
  p.node.outputs = {output};
  p.output_types = {b.values[output].type.dtype};
  return p;
}

void become(LevelBuilder& b, PlanNode& p, const char* op, ValueId x) {
  const uint32_t number = p.number;
  p = make_node(b, *OpRegistry::instance().find(op), p.node.name, {x}, p.node.outputs[0]);
  p.number = number;
}

}  // namespace asc
