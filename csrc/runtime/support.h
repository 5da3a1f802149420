// Whether a device can run a graph, node by node, judged by operators and element types alone: nothing is folded,
// resolved or launched, and no constant is read.
#pragma once

#include <string>
#include <vector>

#include "device/device.h"
#include "graph/graph.h"

namespace asc {

struct NodeSupport {
  std::string op, node;
  std::vector<DType> input_types;  // kUndefined where absent, or where nothing tells the type
  std::string why_not;             // empty: supported
};

// Every node of the graph and of its bodies, bodies before the node that holds them. Declared types of values stand in
// for what cannot be inferred, so that a graph from which unknown operators were left out is judged too; a node with
// an input of unknown type counts as supported when its operator is known. Never throws for what it finds in the graph.
std::vector<NodeSupport> check_support(const Graph& graph, const Device& device);

}  // namespace asc
