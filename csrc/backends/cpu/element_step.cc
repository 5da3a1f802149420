#include "backends/cpu/element_step.h"

#include <string_view>

namespace asc {
namespace {

struct BinaryEntry {
  std::string_view op;
  VecTable::BinaryRows VecTable::* rows;
};

constexpr BinaryEntry kBinaries[] = {{"Add", &VecTable::add},    {"Sub", &VecTable::sub}, {"Mul", &VecTable::mul},
                                     {"Div", &VecTable::div},    {"Max", &VecTable::max}, {"Min", &VecTable::min},
                                     {"PRelu", &VecTable::prelu}};

}  // namespace

bool find_element_step(const Node& node, ElementStep* step) {
  if (node.op == "Clip") {
    step->clip = vec_table().clip;
    return true;
  }
  if (node.inputs.size() == 1) return find_unary_step(node, step);
  if (node.inputs.size() != 2) return false;
  if (node.op == "Pow") {
    set_pow_step(step);
    return true;
  }
  for (const BinaryEntry& entry : kBinaries) {
    if (entry.op != node.op) continue;
    const VecTable::BinaryRows& rows = vec_table().*entry.rows;
    step->vv = rows.vv;
    step->sv = rows.sv;
    step->vs = rows.vs;
    return true;
  }
  return false;
}

}  // namespace asc
