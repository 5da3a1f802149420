// Element-wise operators as row functions on float32: what fused nodes are made of. The functions are those of the
// operators' own kernels, hence the bits are the same.
#pragma once

#include "backends/cpu/vec_table.h"
#include "graph/graph.h"

namespace asc {

// One of unary, param, vv, clip and the conversions is set.
struct ElementStep {
  // Input 0 or the result are bytes; inputs 1 and 2 are scale and zero point of bytes like these.
  enum class Conversion : uint8_t { kNone, kFromBytes, kToBytes } conversion = Conversion::kNone;
  bool is_signed = false;  // the bytes
  VecTable::Unary unary = nullptr;
  VecTable::ParamUnary param = nullptr;
  float p = 0, q = 0;
  VecTable::Binary vv = nullptr, sv = nullptr, vs = nullptr;
  VecTable::ParamUnary clip = nullptr;  // p and q are the only elements of inputs 1 and 2; absent: no bound
};

// False where the operator is not element-wise, or not with these attributes. Throws GraphError for attributes of a
// wrong type.
bool find_element_step(const Node& node, ElementStep* step);

// The parts of find_element_step that lie beside the operators' kernels.
bool find_unary_step(const Node& node, ElementStep* step);
void set_pow_step(ElementStep* step);

}  // namespace asc
