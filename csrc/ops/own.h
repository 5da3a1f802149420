// The operators that only plans have: made out of checked nodes, and read from saved files, which are checked again
// (plan/own_nodes.cc). Models cannot name them: the registry does not know them.
#pragma once

#include <string_view>

#include "ops/op.h"

namespace asc {

// By name; null where there is none.
const Op* find_own_op(std::string_view name);

}  // namespace asc
