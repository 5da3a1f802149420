// Fused nodes: operators that a device runs as one task, with values between them that nobody else reads. plan/fuse.cc
// makes them out of checked nodes. Models cannot name them: the registry does not know the operator.
#pragma once

#include <new>
#include <type_traits>
#include <vector>

#include "ops/op.h"

namespace asc {

constexpr size_t kMaxFusedInputs = 40;
constexpr size_t kMaxFusedHosts = 8;
constexpr size_t kMaxFusedSteps = 32;  // at most 32: sets of steps are bits
constexpr size_t kMaxStepInputs = 5;

// What a fused node does: attribute "body" of the node. Values 0 to inputs - 1 are the node's inputs, then comes the
// result of each step in order, the last one being the node's; constants that steps read on the host are behind them.
// The first inputs are those that steps read on the host, for ranges and shapes. Steps have no names, and every value
// has its type, so that nodes of equal structure share a body: float32 but for what is read on the host, the results of
// IsNaN, and bytes with their zero points beside DequantizeLinear and QuantizeLinear. Immutable once made.
struct FusedBody : Graph {
  std::vector<const Op*> ops;  // by step
  size_t host_count = 0;       // inputs that are read on the host

  size_t input_count() const { return inputs().size(); }
  size_t step_count() const { return ops.size(); }
  const Node& step(size_t i) const { return nodes()[i]; }
  DType type(ValueId v) const { return value(v).type.dtype; }
  DType step_type(size_t i) const { return type(static_cast<ValueId>(input_count() + i)); }
  // What a step reads on the host as `v`: a constant of the body or one of the first inputs; null for data.
  const HostTensor* host(const ShapeContext& ctx, ValueId v) const;
};

// The operator of fused nodes whose first `host_count` inputs are read on the host, named "Fused".
const Op& fused_op(size_t host_count = 0);
const FusedBody& fused_body(const Node& node);

// Room for the shapes of all values of a body but its constants, of which only those are written that exist.
class FusedShapes {
 public:
  explicit FusedShapes(const FusedBody& body) {
    for (size_t i = 0; i < body.input_count() + body.step_count(); ++i) new (data() + i) Shape();
  }
  Shape* data() { return reinterpret_cast<Shape*>(bytes_); }

 private:
  static_assert(std::is_trivially_destructible_v<Shape> && std::is_trivially_copyable_v<Shape>);
  alignas(Shape) unsigned char bytes_[(kMaxFusedInputs + kMaxFusedSteps) * sizeof(Shape)];
};

// Shapes of all values of the body but its constants, which the caller holds: `shapes` has input_count() + step_count()
// elements, of which the inputs are set. Throws GraphError and UnsupportedError with the fused node's name.
void infer_fused_steps(const ShapeContext& ctx, const FusedBody& body, Shape* shapes);

// What the rules and kernels of one step may read.
struct StepOperands {
  StepOperands(const ShapeContext& ctx, const FusedBody& body, size_t step, const Shape* shapes);
  DType types[kMaxStepInputs] = {};
  const Shape* shapes[kMaxStepInputs] = {};
  const HostTensor* hosts[kMaxStepInputs] = {};
  int count = 0;
};

}  // namespace asc
