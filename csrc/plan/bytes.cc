// QuantizeLinear moves before operators that only move or choose elements: they then work on bytes, and where what they
// read was bytes of the same scale, both conversions go.
#include <map>
#include <set>
#include <tuple>

#include "plan/byte_values.h"

namespace asc {
namespace {

class ByteMover {
 public:
  explicit ByteMover(LevelBuilder& b) : b_(b), users_(b.values.size(), 0), producer_(b.values.size(), -1) {
    for (const PlanNode& p : b.nodes)
      for (ValueId v : p.node.inputs)
        if (v != kNoValue) ++users_[v];
    for (ValueId v : b.outputs) users_[v] += 2;
  }

  void run() {
    std::vector<PlanNode> nodes = std::move(b_.nodes);
    b_.nodes.clear();
    for (PlanNode& p : nodes) {
      const std::optional<ByteScale> scale = p.node.op == "QuantizeLinear" ? scale_of(b_, p.node) : std::nullopt;
      const ValueId bytes = scale ? find_bytes(p.node.inputs[0], *scale) : kNoValue;
      if (bytes == kNoValue) {
        emit(std::move(p));
        continue;
      }
      const ValueId out = p.node.outputs[0];
      emit(make_node(b_, *OpRegistry::instance().find("Identity"), p.node.name, {bytes}, out));
    }
  }

 private:
  void emit(PlanNode p) {
    producer_.resize(b_.values.size(), -1);
    users_.resize(b_.values.size(), 0);
    for (ValueId v : p.node.outputs)
      if (v != kNoValue) producer_[v] = static_cast<int>(b_.nodes.size());
    b_.nodes.push_back(std::move(p));
  }

  // The bytes that v is made of, or what moves them; kNoValue where v has to be rounded.
  ValueId find_bytes(ValueId v, const ByteScale& scale) {
    if (producer_[v] < 0) return kNoValue;
    const PlanNode p = b_.nodes[static_cast<size_t>(producer_[v])];
    const std::optional<ByteScale> before = p.node.op == "DequantizeLinear" ? scale_of(b_, p.node) : std::nullopt;
    if (before && *before == scale) return p.node.inputs[0];
    if (before || users_[v] != 1 || !moves_elements(p)) return kNoValue;
    PlanNode moved = p;
    moved.number = (*b_.next_number)++;
    const size_t count = p.node.op == "Concat" ? p.node.inputs.size() : 1;
    for (size_t i = 0; i < count; ++i) {
      ValueId bytes = find_bytes(p.node.inputs[i], scale);
      if (bytes == kNoValue && picks_elements(p.node.op)) return kNoValue;
      moved.node.inputs[i] = bytes == kNoValue ? round(p.node.inputs[i], scale) : bytes;
      moved.input_types[i] = scale.type;
      moved.constant_inputs &= ~(uint64_t{1} << i);
    }
    if (p.node.op == "Pad" && !turn_padding(moved, scale)) return kNoValue;
    moved.node.outputs = {add_value(b_, b_.values[v].name + "_bytes", scale.type, v)};
    moved.output_types = {scale.type};
    const ValueId result = moved.node.outputs[0];
    emit(std::move(moved));
    return result;
  }

  // What a Pad fills with, as bytes; false where that is another number than 0.
  bool turn_padding(PlanNode& p, const ByteScale& scale) {
    const ValueId fill = input_of(p.node, 2);
    const HostTensor* c = constant_of(b_, fill);
    if (fill != kNoValue && (!c || c->dtype != DType::kFloat32 || c->shape.num_elements() != 1 || *c->as<float>() != 0))
      return false;
    HostTensor zero = HostTensor::allocate(scale.type, Shape{});
    *static_cast<uint8_t*>(zero.mutable_data()) = static_cast<uint8_t>(scale.zero);
    p.node.inputs.resize(std::max<size_t>(p.node.inputs.size(), 3), kNoValue);
    p.input_types.resize(p.node.inputs.size(), DType::kUndefined);
    p.node.inputs[2] = add_constant(b_, "fill_of_" + p.node.name, std::move(zero));
    p.input_types[2] = scale.type;
    p.constant_inputs |= 4;
    return true;
  }

  ValueId round(ValueId v, const ByteScale& scale) {
    const auto key = std::make_tuple(v, scale.scale_value, scale.zero_value);
    if (const auto found = rounded_.find(key); found != rounded_.end()) return found->second;
    const ValueId bytes = add_value(b_, b_.values[v].name + "_bytes", scale.type, v);
    std::vector<ValueId> inputs = {v, scale.scale_value};
    if (scale.zero_value != kNoValue) inputs.push_back(scale.zero_value);
    emit(make_node(b_, *OpRegistry::instance().find("QuantizeLinear"), "round_" + b_.values[v].name, inputs, bytes));
    return rounded_[key] = bytes;
  }

  // Each element of the result is one of the operands; rounding keeps their order.
  static bool moves_elements(const PlanNode& p) {
    static const std::set<std::string> kMoves = {"Concat",  "DepthToSpace", "Expand",   "Flatten",      "Identity",
                                                 "MaxPool", "Pad",          "Reshape",  "SpaceToDepth", "Squeeze",
                                                 "Tile",    "Transpose",    "Unsqueeze"};
    if (p.node.outputs.size() != 1 || p.output_types[0] != DType::kFloat32) return false;
    if (p.node.op == "Resize")
      return p.node.attributes.get_string("mode", "nearest") == "nearest" &&
             p.node.attributes.get_string("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize";
    return kMoves.count(p.node.op) != 0 || picks_elements(p.node.op);
  }
  // Reads only some elements: rounding all of them first would be more work.
  static bool picks_elements(const std::string& op) { return op == "Slice" || op == "Gather"; }

  LevelBuilder& b_;
  std::vector<int> users_;     // by value
  std::vector<int> producer_;  // by value: node, or -1
  std::map<std::tuple<ValueId, ValueId, ValueId>, ValueId> rounded_;
};

}  // namespace

void move_quantization(LevelBuilder& b) { ByteMover(b).run(); }

}  // namespace asc
