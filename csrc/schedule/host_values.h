// Computes nodes on the host with the CPU back end's kernels: host values while resolving, constants while compiling.
#pragma once

#include <memory>
#include <vector>

#include "kernel/kernel.h"
#include "plan/plan.h"

namespace asc {

// Larger host values are refused: they would be a hostile or mistaken model (a Range of 2^40, say).
constexpr size_t kHostValueLimitBytes = size_t{256} << 20;

class HostEvaluator {
 public:
  explicit HostEvaluator(const KernelRegistry& kernels) : kernels_(kernels) {}

  const Kernel* find_kernel(const PlanNode& node) const {
    return kernels_.find(node.node.op, node.input_types, node.output_types[0]);
  }
  // Options of host evaluation: one thread.
  const DeviceOptions& options() const { return options_; }

  // Runs `tiling` on host memory. values[i] is null where an input is absent or only its shape matters.
  // Throws GraphError with the node's name when the kernel refuses its input, OutOfMemoryError.
  std::vector<HostTensor> launch(const PlanNode& node, const Tiling& tiling, ArrayView<const HostTensor* const> values,
                                 ArrayView<const Shape> output_shapes);
  // A view: the same bytes under another shape.
  static HostTensor view(const HostTensor& value, const Shape& shape) { return {value.dtype, shape, value.buffer}; }

  // infer_shape, tiling and launch in one go, without caches (constant folding).
  std::vector<HostTensor> compute(const PlanNode& node, ArrayView<const HostTensor* const> values,
                                  ArrayView<const Shape* const> shapes);

 private:
  const KernelRegistry& kernels_;
  DeviceOptions options_;
  Worker worker_;
  std::vector<void*> slots_;
  std::vector<uint32_t> operands_;
};

}  // namespace asc
