// The movement family is registered from two files; this joins them.
#pragma once

#include "ops/op.h"

namespace asc {

void register_index_ops(OpRegistry&);  // Slice, Pad, Gather*, Scatter*

}  // namespace asc
