// The nodes that quantized.cc makes, and what they stand for.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "ops/quantized.h"
#include "plan/byte_values.h"

namespace asc {

// A QuantizedConv or QuantizedMatMul while it is put together from a product and what is around it: a Conv, MatMul or
// Gemm of real numbers, or a ConvInteger or MatMulInteger.
class QuantizedNode {
 public:
  QuantizedNode(LevelBuilder& b, const Node& product) : b_(b), product_(product), output_(product.outputs[0]) {}

  // From the DequantizeLinear of either side; false where their types, scales or shapes do not fit.
  bool set_operands(const Node& x, const Node& w);
  bool set_bias(ValueId v);
  // Of integers, with the zero points that they have; false for those of rows and, where the weights are no constant,
  // of columns.
  bool set_integers();
  // What such a product is multiplied with after a Cast: a value of that shape, computed while the model runs.
  bool add_scale(const Node& cast, const Node& mul, ValueId scale, const Shape& shape);
  // An Add of a constant behind it.
  bool add_bias(const Node& add);
  // Relu and Clip with constant bounds.
  bool add_bounds(const Node& n);
  bool add_rounding(const Node& n);

  bool is_conv() const { return product_.op == "Conv" || product_.op == "ConvInteger"; }
  int rank() const { return weight_rank_; }
  PlanNode make_conv();  // reads x as it is: the caller turns it
  PlanNode make_matmul();

 private:
  bool is_integer() const { return product_.op == "MatMulInteger" || product_.op == "ConvInteger"; }
  bool fits_outputs(const Shape& shape) const;
  bool set_weight(const Node& w);
  bool set_weight_scales(const HostTensor& scale, const HostTensor* zero);
  int weight_axis() const;
  ValueId make_weight();
  std::vector<ValueId> make_inputs();
  PlanNode finish(const Op& op);
  ValueId add_copy(const Node& dequantizer);

  LevelBuilder& b_;
  Node product_, x_node_, w_node_;
  ByteScale x_;
  std::vector<float> scales_;   // one, or one for each output channel: of x times w
  ValueId scale_ = kNoValue;    // the same, where it is computed
  std::vector<int32_t> zeros_;  // of w; likewise
  ValueId w_value_ = kNoValue, x_zero_ = kNoValue, w_zero_ = kNoValue;
  int weight_rank_ = 0;
  int64_t outputs_ = 0;       // output channels or columns; 0: unknown
  bool is_constant_ = false;  // w
  ValueId bias_ = kNoValue;
  float low_ = -std::numeric_limits<float>::infinity(), high_ = std::numeric_limits<float>::infinity();
  std::optional<ByteScale> y_;
  std::vector<Node> end_;  // bounds and rounding
  ValueId output_;
};

// BytePool for an average between `x`, a DequantizeLinear, and `round`.
PlanNode make_average(LevelBuilder& b, const Node& n, const Node& x, const Node& round, const char* mode);
// BytePool for a MaxPool of bytes.
PlanNode make_max_pool(LevelBuilder& b, const PlanNode& p);
// Turns the sizes or scales of a Resize to channels last; returns the rank, 0 where they are not constant.
int turn_resize(LevelBuilder& b, PlanNode& p);
// The same for the pads of a Pad.
int turn_known_pads(LevelBuilder& b, PlanNode& p);

}  // namespace asc
