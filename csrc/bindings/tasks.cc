// What the tasks of an executable work on.
#include "bindings/executable.h"

namespace asc {
namespace {

using Operands = std::vector<TaskInfo::Operand>;

py::list make_operands(const Operands& operands) {
  py::list list;
  for (const TaskInfo::Operand& operand : operands) {
    if (operand.dtype == DType::kUndefined) {
      list.append(py::none());
      continue;
    }
    py::tuple dims(operand.shape.rank());
    for (int i = 0; i < operand.shape.rank(); ++i) dims[i] = operand.shape[i];
    list.append(py::make_tuple(name_of(operand.dtype), dims, operand.is_constant));
  }
  return list;
}

}  // namespace

void bind_tasks(py::module_& m) {
  // -> [(name, operator, implementation, [(element type, shape, is constant) or None], likewise outputs, parts,
  // number)]
  m.def("tasks", [](const PyExecutable& exe) {
    std::vector<TaskInfo> tasks;
    {
      const Unlocked unlocked;
      tasks = exe.core->tasks();
    }
    py::list list;
    for (const TaskInfo& task : tasks) {
      const NodeInfo& node = exe.core->node(task.number);
      list.append(py::make_tuple(node.name, node.op, task.implementation, make_operands(task.inputs),
                                 make_operands(task.outputs), task.parts, task.number));
    }
    return list;
  });
}

}  // namespace asc
