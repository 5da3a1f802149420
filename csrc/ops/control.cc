// Control flow: the runtime drives the bodies, so shapes and types follow from them and not from rules here.
#include "ops/infer.h"

namespace asc {

void register_control_ops(OpRegistry& r) {
  r.add(OpDef("If", 1, -1, nullptr, nullptr).outputs(1, -1).of_kind(OpKind::kControl).reads_host({0}));
  r.add(OpDef("Loop", 2, -1, nullptr, nullptr).outputs(1, -1).of_kind(OpKind::kControl).reads_host({0, 1}));
  r.add(OpDef("Scan", 1, -1, nullptr, nullptr).outputs(1, -1).of_kind(OpKind::kControl));
}

}  // namespace asc
