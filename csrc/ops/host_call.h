// Operators that a callable outside the core computes, on the host: attribute "callable" names it, "payload" is for it
// alone, "output_types" holds the element types of the results as ONNX numbers, or -1 - i for that of input i. Inputs
// are host values, so that a value computed on the device is read back at a sync point; the shapes of the results are
// known once they are there.
#pragma once

#include <functional>
#include <vector>

#include "ops/op.h"

namespace asc {

// inputs[i] is null where input i is absent. Returns one tensor for each output of the node. Must depend on its
// arguments alone: results are kept while the inputs stay the same. Called on the thread that resolves.
using HostCallFn = std::function<std::vector<HostTensor>(const Node&, const std::vector<const HostTensor*>& inputs)>;

// Set once, before the first run; replaces the former one.
void set_host_call(HostCallFn fn);

// Calls it. Throws GraphError where none is set, and where the results do not have the declared count and types.
std::vector<HostTensor> call_host(const Node& node, const std::vector<const HostTensor*>& inputs,
                                  const std::vector<DType>& output_types);

}  // namespace asc
