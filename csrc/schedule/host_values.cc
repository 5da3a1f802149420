#include "schedule/host_values.h"

namespace asc {

std::vector<HostTensor> HostEvaluator::launch(const PlanNode& node, const Tiling& tiling,
                                              ArrayView<const HostTensor* const> values,
                                              ArrayView<const Shape> output_shapes) {
  std::vector<HostTensor> results;
  slots_.clear();
  for (const HostTensor* v : values) slots_.push_back(v ? const_cast<void*>(v->data()) : nullptr);
  for (size_t i = 0; i < output_shapes.size(); ++i) {
    const int64_t count = output_shapes[i].num_elements();
    if (count > static_cast<int64_t>(kHostValueLimitBytes / size_of(node.output_types[i])))
      throw OutOfMemoryError("[resolve] " + node.node.op + " '" + node.node.name + "': host value of shape " +
                             output_shapes[i].text() + " exceeds " + std::to_string(kHostValueLimitBytes) +
                             " bytes; check the values that determine this shape");
    results.push_back(HostTensor::allocate(node.output_types[i], output_shapes[i]));
    slots_.push_back(results.back().mutable_data());
  }
  std::unique_ptr<Buffer> workspace;
  if (tiling.workspace_bytes) workspace = std::make_unique<Buffer>(tiling.workspace_bytes);
  slots_.push_back(workspace ? workspace->data() : nullptr);
  slots_.push_back(nullptr);
  slots_.push_back(nullptr);
  while (operands_.size() < slots_.size()) operands_.push_back(static_cast<uint32_t>(operands_.size()));
  Task task{tiling.launch,
            &tiling,
            operands_.data(),
            static_cast<uint16_t>(values.size()),
            static_cast<uint16_t>(output_shapes.size()),
            node.number};
  if (task.launch(task, slots_.data(), worker_) != Status::kOk)
    throw GraphError("[resolve] " + node.node.op + " '" + node.node.name + "': " + worker_.error);
  return results;
}

std::vector<HostTensor> HostEvaluator::compute(const PlanNode& node, ArrayView<const HostTensor* const> values,
                                               ArrayView<const Shape* const> shapes) {
  std::vector<Shape> out(node.node.outputs.size());
  const int count = static_cast<int>(values.size());
  InferContext infer(node.node, node.input_types.data(), shapes.data(), values.data(), count, out.data(),
                     static_cast<int>(out.size()));
  node.op->infer_shape(infer);
  if (node.is_view()) return {view(*values[0], out[0])};
  const Kernel* kernel = find_kernel(node);
  if (!kernel)
    throw UnsupportedError("[fold] no host kernel for " + node.node.op + " '" + node.node.name + "' on " +
                           name_of(node.input_types.empty() ? node.output_types[0] : node.input_types[0]));
  TilingContext ctx(node.node, node.input_types.data(), shapes.data(), values.data(), count, node.output_types.data(),
                    out.data(), static_cast<int>(out.size()), 0, options_);
  const std::shared_ptr<const Tiling> tiling = kernel->tiling(ctx);
  return launch(node, *tiling, values, out);
}

}  // namespace asc
