// A graph as bytes, in a form of our own: its structure (names, types, nodes, attributes, bodies) and, apart from it,
// the contents of its constants, each at a multiple of kAlignment so that they can be used where they lie.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/array_view.h"
#include "graph/graph.h"

namespace asc {

struct GraphBytes {
  std::string structure;
  std::vector<HostTensor> constants;  // equal ones are stored once
  std::vector<uint64_t> offsets;      // of the constants' contents, ascending
  uint64_t data_bytes = 0;            // of all contents with their padding
};

// Little-endian hosts only; throws UnsupportedError elsewhere, and for bodies nested deeper than validation allows.
GraphBytes serialize(const Graph& graph);

// The graph that `structure` describes; `data`, aligned to kAlignment, holds the contents of its constants, which stay
// there and keep `owner` alive. Every length, index and type is checked: throws GraphError where the bytes are no such
// graph. What the graph means is left to Graph::validate_and_sort and compile_plan.
Graph deserialize(ArrayView<const char> structure, ArrayView<const char> data, std::shared_ptr<const void> owner);

}  // namespace asc
