#include "plan/quantized_nodes.h"

#include <cmath>

namespace asc {
namespace {

// The bounds of Relu or Clip; false where they are not constant numbers.
bool read_bounds(const LevelBuilder& b, const Node& n, float* low, float* high) {
  if (n.op == "Relu") {
    *low = 0;
    return true;
  }
  float* const to[] = {low, high};
  for (size_t i : {1, 2}) {
    if (input_of(n, i) == kNoValue) continue;
    const HostTensor* c = constant_of(b, n.inputs[i]);
    if (!c || c->dtype != DType::kFloat32 || c->shape.num_elements() != 1 || std::isnan(*c->as<float>())) return false;
    *to[i - 1] = *c->as<float>();
  }
  return *low <= *high;
}

bool is_zero(const std::vector<int32_t>& list) {
  return std::all_of(list.begin(), list.end(), [](int32_t z) { return z == 0; });
}

}  // namespace

bool QuantizedNode::set_operands(const Node& x, const Node& w) {
  const std::optional<ByteScale> scale = scale_of(b_, x);
  if (!scale || b_.values[x.inputs[0]].constant) return false;
  x_node_ = x;
  x_ = *scale;
  if (x_.zero != 0) x_zero_ = x_.zero_value;
  return set_weight(w);
}

bool QuantizedNode::set_weight(const Node& w) {
  w_node_ = w;
  w_value_ = w.inputs[0];
  w_zero_ = input_of(w, 2);
  const HostTensor *constant = constant_of(b_, w.inputs[0]), *scale = constant_of(b_, input_of(w, 1)),
                   *zero = constant_of(b_, input_of(w, 2));
  is_constant_ = constant != nullptr;
  if (!is_byte(b_.values[w.inputs[0]].type.dtype) || w.attributes.get_int("block_size", 0) != 0) return false;
  if (!scale || scale->dtype != DType::kFloat32 || (input_of(w, 2) != kNoValue && !zero)) return false;
  if (!is_constant_) {  // the product of two results
    if (product_.op != "MatMul" || scale->shape.num_elements() != 1) return false;
    return set_weight_scales(*scale, zero);
  }
  weight_rank_ = constant->shape.rank();
  if (constant->shape.num_elements() == 0) return false;
  if (product_.op == "Conv" ? weight_rank_ < 3 || weight_rank_ > 5 : weight_rank_ < 2) return false;
  if (product_.op == "Gemm") {
    if (product_.attributes.get_int("transA", 0) != 0 || weight_rank_ != 2) return false;
    if (product_.attributes.get_float("alpha", 1) != 1 || product_.attributes.get_float("beta", 1) != 1) return false;
  }
  outputs_ = constant->shape[weight_axis()];
  constexpr int64_t kMaxDepth = INT32_MAX / (255 * 255);  // products of which a sum fits 32 bits
  if (constant->shape.num_elements() / outputs_ > kMaxDepth && product_.op != "MatMul") return false;
  if (product_.op == "MatMul" && constant->shape[weight_rank_ - 2] > kMaxDepth) return false;
  if (scale->shape.num_elements() != 1) {
    const int64_t axis = w.attributes.get_int("axis", 1);
    if (scale->shape.rank() != 1 || scale->shape[0] != outputs_) return false;
    if ((axis < 0 ? axis + weight_rank_ : axis) != weight_axis()) return false;
    if (product_.op == "MatMul" && weight_rank_ != 2) return false;
  }
  return set_weight_scales(*scale, zero);
}

// The axis of output channels or columns.
int QuantizedNode::weight_axis() const {
  if (is_conv()) return 0;
  if (product_.op == "Gemm" && product_.attributes.get_int("transB", 0) != 0) return 0;
  return weight_rank_ - 1;
}

bool QuantizedNode::set_weight_scales(const HostTensor& scale, const HostTensor* zero) {
  for (int64_t i = 0; i < scale.shape.num_elements(); ++i) {
    const float s = scale.as<float>()[i] * x_.scale;
    if (!std::isfinite(s)) return false;
    scales_.push_back(s);
  }
  for (int64_t i = 0; zero && i < zero->shape.num_elements(); ++i) zeros_.push_back(byte_at(*zero, i));
  return !zero || zero->shape.num_elements() == scale.shape.num_elements();
}

bool QuantizedNode::set_bias(ValueId v) {
  if (v == kNoValue) return true;
  const HostTensor* c = constant_of(b_, v);
  if (!c || c->dtype != DType::kFloat32 || c->shape.num_elements() != outputs_) return false;
  if (c->shape.rank() == 0 || c->shape[c->shape.rank() - 1] != outputs_) return false;
  bias_ = v;
  return true;
}

bool QuantizedNode::set_integers() {
  w_value_ = product_.inputs[1];
  x_zero_ = input_of(product_, 2), w_zero_ = input_of(product_, 3);
  const HostTensor *w = constant_of(b_, w_value_), *zero = constant_of(b_, w_zero_);
  const auto is_one = [&](ValueId v) {
    return v == kNoValue || (b_.static_shapes[v] && b_.static_shapes[v]->num_elements() == 1);
  };
  if (is_conv() ? !w : !is_one(x_zero_)) return false;
  if (!w) {
    if (zero) zeros_.push_back(byte_at(*zero, 0));
    return is_one(w_zero_);
  }
  is_constant_ = true;
  weight_rank_ = w->shape.rank();
  if (w->shape.num_elements() == 0 || (w_zero_ != kNoValue && !zero)) return false;
  if (is_conv() ? weight_rank_ < 3 || weight_rank_ > 5 : weight_rank_ < 2) return false;
  outputs_ = w->shape[weight_axis()];
  const int64_t zeros = zero ? zero->shape.num_elements() : 0;
  if (zeros > 1 && (zeros != outputs_ || (!is_conv() && weight_rank_ != 2))) return false;
  for (int64_t i = 0; i < zeros; ++i) zeros_.push_back(byte_at(*zero, i));
  return true;
}

// Whether a tensor of that shape broadcasts to the result as one number, or as one for each output.
bool QuantizedNode::fits_outputs(const Shape& shape) const {
  const int behind = is_conv() ? weight_rank_ - 2 : 0;  // axes behind that of the outputs
  if (shape.rank() > behind + 1 + (is_conv() ? 1 : 0)) return false;
  if (shape.num_elements() == 1) return true;
  const int axis = shape.rank() - 1 - behind;
  return axis >= 0 && is_constant_ && shape.num_elements() == outputs_ && shape[axis] == outputs_;
}

bool QuantizedNode::add_scale(const Node& cast, const Node& mul, ValueId scale, const Shape& shape) {
  if (b_.values[cast.outputs[0]].type.dtype != DType::kFloat32 || !fits_outputs(shape)) return false;
  scale_ = scale;
  end_ = {cast, mul};
  output_ = mul.outputs[0];
  return true;
}

bool QuantizedNode::add_bias(const Node& add) {
  const ValueId v = add.inputs[add.inputs[0] == output_ ? 1 : 0];
  const HostTensor* c = constant_of(b_, v);
  if (!c || !is_constant_ || c->dtype != DType::kFloat32 || c->shape.num_elements() != outputs_) return false;
  if (!fits_outputs(c->shape)) return false;
  bias_ = v;
  end_.push_back(add);
  output_ = add.outputs[0];
  return true;
}

bool QuantizedNode::add_bounds(const Node& n) {
  if (!read_bounds(b_, n, &low_, &high_)) {
    low_ = -std::numeric_limits<float>::infinity(), high_ = std::numeric_limits<float>::infinity();
    return false;
  }
  end_.push_back(n);
  output_ = n.outputs[0];
  return true;
}

// Bounds that rounding has anyway are dropped.
bool QuantizedNode::add_rounding(const Node& n) {
  y_ = scale_of(b_, n);
  if (!y_) return false;
  const double lowest = y_->type == DType::kInt8 ? -128 : 0;
  if (std::nearbyint(low_ / y_->scale) + y_->zero <= lowest) low_ = -std::numeric_limits<float>::infinity();
  if (std::nearbyint(high_ / y_->scale) + y_->zero >= lowest + 255) high_ = std::numeric_limits<float>::infinity();
  end_.push_back(n);
  output_ = n.outputs[0];
  return true;
}

// Signed and without zero points where that is possible; with the columns last for products. What the node stands for
// then reads the same weights: the original need not be kept.
ValueId QuantizedNode::make_weight() {
  const ValueId v = w_value_;
  if (!is_constant_) return v;
  const HostTensor& w = *b_.values[v].constant;
  const int64_t count = w.shape.num_elements();
  const int64_t behind = w.shape.span_of(weight_axis() + 1, w.shape.rank());
  const auto centered = [&](int64_t i) -> int32_t {
    if (zeros_.size() < 2) return byte_at(w, i) - (zeros_.empty() ? 0 : zeros_[0]);
    return byte_at(w, i) - zeros_[static_cast<size_t>(i / behind % outputs_)];
  };
  const bool turns = product_.op == "Gemm" && weight_axis() == 0, is_centered = is_zero(zeros_);
  bool is_signed = true;
  if (w.dtype != DType::kInt8 || !is_centered)
    for (int64_t i = 0; i < count && is_signed; ++i) is_signed = centered(i) >= -128 && centered(i) <= 127;
  const bool shifts = is_signed && (w.dtype != DType::kInt8 || !is_centered);
  if (!turns && !shifts) return v;
  const int64_t columns = turns ? w.shape[0] : 1, rows = count / columns;
  HostTensor to = HostTensor::allocate(shifts ? DType::kInt8 : w.dtype, turns ? Shape{rows, columns} : w.shape);
  auto* bytes = static_cast<uint8_t*>(to.mutable_data());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t i = c * rows + r;
      bytes[r * columns + c] = static_cast<uint8_t>(shifts ? centered(i) : byte_at(w, i));
    }
  if (shifts) zeros_.clear(), w_zero_ = kNoValue;
  const ValueId made = add_constant(b_, b_.values[v].name + "_of_" + product_.name, std::move(to));
  if (is_integer()) {
    product_.inputs[1] = made;
    if (shifts && product_.inputs.size() > 3) product_.inputs.resize(3);
    return made;
  }
  w_node_.inputs[0] = made;
  if (shifts) w_node_.inputs.resize(2);
  if (turns) {
    w_node_.attributes.set("axis", int64_t{1});
    product_.attributes.set("transB", int64_t{0});
  }
  return made;
}

std::vector<ValueId> QuantizedNode::make_inputs() {
  const std::string& name = product_.name;
  std::vector<ValueId> in(kQuantInputs, kNoValue);
  in[kQuantX] = is_integer() ? product_.inputs[0] : x_node_.inputs[0];
  in[kQuantW] = make_weight();
  in[kQuantXZero] = x_zero_;
  if (!is_zero(zeros_) || !constant_of(b_, w_zero_)) in[kQuantWZero] = w_zero_;
  const Shape shape = scales_.size() == 1 ? Shape{} : Shape{static_cast<int64_t>(scales_.size())};
  in[kQuantScale] =
      is_integer() ? scale_ : add_constant(b_, name + "_scale", HostTensor::from(DType::kFloat32, shape, scales_));
  in[kQuantBias] = bias_;
  if (y_) {
    in[kQuantYScale] = y_->scale_value;
    if (y_->zero != 0) in[kQuantYZero] = y_->zero_value;
  }
  return in;
}

// A DequantizeLinear may serve several readers: each node has one of its own.
ValueId QuantizedNode::add_copy(const Node& n) {
  return add_value(b_, b_.values[n.outputs[0]].name + "_of_" + product_.name, DType::kFloat32, n.inputs[0]);
}

PlanNode QuantizedNode::finish(const Op& op) {
  PlanNode p = make_node(b_, op, product_.name, make_inputs(), output_);
  if (std::isfinite(low_)) p.node.attributes.set("low", static_cast<double>(low_));
  if (std::isfinite(high_)) p.node.attributes.set("high", static_cast<double>(high_));
  Node product = product_;
  size_t side = 0;
  for (Node n : is_integer() ? std::vector<Node>{} : std::vector<Node>{x_node_, w_node_}) {
    n.outputs[0] = product.inputs[side++] = add_copy(n);
    n.name += "_of_" + product_.name;
    p.parts.push_back(std::move(n));
  }
  p.parts.push_back(std::move(product));
  for (const Node& n : end_) {
    p.node.name += " + " + n.name;
    p.parts.push_back(n);
  }
  return p;
}

PlanNode QuantizedNode::make_conv() {
  PlanNode p = finish(quantized_conv_op());
  for (const Attribute& a : product_.attributes.all())
    if (a.name != "kernel_shape") p.node.attributes.set(a.name, a.data);
  return p;
}

PlanNode QuantizedNode::make_matmul() { return finish(quantized_matmul_op()); }

PlanNode make_average(LevelBuilder& b, const Node& n, const Node& x, const Node& round, const char* mode) {
  PlanNode p =
      make_node(b, byte_pool_op(), n.name + " + " + round.name,
                {x.inputs[0], x.inputs[1], input_of(x, 2), round.inputs[1], input_of(round, 2)}, round.outputs[0]);
  if (n.op == "AveragePool") p.node.attributes = n.attributes;
  p.node.attributes.set("mode", std::string(mode));
  Node up = x, average = n;
  up.name += "_of_" + n.name;
  up.outputs[0] = average.inputs[0] =
      add_value(b, b.values[x.outputs[0]].name + "_of_" + n.name, DType::kFloat32, x.outputs[0]);
  p.parts = {std::move(up), std::move(average), round};
  return p;
}

PlanNode make_max_pool(LevelBuilder& b, const PlanNode& p) {
  PlanNode pool = make_node(b, byte_pool_op(), p.node.name, {p.node.inputs[0]}, p.node.outputs[0]);
  pool.node.attributes = p.node.attributes;
  pool.node.attributes.set("mode", std::string("max"));
  pool.parts = {p.node};
  return pool;
}

int turn_resize(LevelBuilder& b, PlanNode& p) {
  if (p.node.attributes.has("axes") || p.node.attributes.get_string("mode", "nearest") != "nearest") return 0;
  int rank = 0;
  for (size_t i : {2, 3}) {
    const HostTensor* c = constant_of(b, input_of(p.node, i));
    if (input_of(p.node, i) == kNoValue || (c && c->shape.num_elements() == 0)) continue;
    if (!c || c->shape.rank() != 1 || rank != 0) return 0;
    rank = static_cast<int>(c->shape[0]);
    if (rank < 3 || rank > 5) return 0;
    HostTensor turned = HostTensor::allocate(c->dtype, c->shape);
    const size_t size = size_of(c->dtype);
    const auto* from = static_cast<const char*>(c->data());
    auto* to = static_cast<char*>(turned.mutable_data());
    for (int k = 0; k < rank; ++k) {
      const int source = k == 0 ? 0 : k + 1 == rank ? 1 : k + 1;
      std::memcpy(to + static_cast<size_t>(k) * size, from + static_cast<size_t>(source) * size, size);
    }
    p.node.inputs[i] = add_constant(b, b.values[p.node.inputs[i]].name + "_last", std::move(turned));
  }
  return rank;
}

int turn_known_pads(LevelBuilder& b, PlanNode& p) {
  const HostTensor* pads = constant_of(b, input_of(p.node, 1));
  if (!pads || pads->dtype != DType::kInt64 || pads->shape.rank() != 1 || input_of(p.node, 3) != kNoValue) return 0;
  const int64_t count = pads->shape[0], rank = count / 2;
  if (count % 2 != 0 || rank < 3 || rank > 5) return 0;
  std::vector<int64_t> turned;
  for (int64_t side : {int64_t{0}, rank}) {
    const int64_t* of_side = pads->as<int64_t>() + side;
    turned.push_back(of_side[0]);
    turned.insert(turned.end(), of_side + 2, of_side + rank);
    turned.push_back(of_side[1]);
  }
  p.node.inputs[1] =
      add_constant(b, b.values[p.node.inputs[1]].name + "_last", HostTensor::from(DType::kInt64, Shape{count}, turned));
  return static_cast<int>(rank);
}

}  // namespace asc
