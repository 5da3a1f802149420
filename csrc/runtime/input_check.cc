#include "runtime/input_check.h"

#include <string>
#include <utility>

namespace asc {

void check_inputs(const Plan& plan, const std::vector<TensorView>& inputs) {
  auto complain = [&](size_t i, const std::string& what) {
    throw GraphError("[run] input '" + plan.values[plan.inputs[i]].name + "': " + what);
  };
  std::vector<std::pair<const std::string*, int64_t>> symbols;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorType& type = plan.values[plan.inputs[i]].type;
    const Shape& shape = inputs[i].shape;
    if (inputs[i].dtype != type.dtype)
      complain(i, std::string("expected ") + name_of(type.dtype) + ", got " + name_of(inputs[i].dtype) +
                      "; convert it with astype");
    if (!type.has_rank) continue;
    if (static_cast<size_t>(shape.rank()) != type.dims.size())
      complain(i, "expected " + std::to_string(type.dims.size()) + " dimensions " + type.text() + ", got shape " +
                      shape.text());
    for (int d = 0; d < shape.rank(); ++d) {
      const Dim& dim = type.dims[d];
      if (dim.is_static() && dim.value != shape[d])
        complain(i, "dim " + std::to_string(d) + " is " + std::to_string(dim.value) + " in the model, got shape " +
                        shape.text());
      if (dim.symbol.empty()) continue;
      bool known = false;
      for (const auto& [name, value] : symbols) {
        if (*name != dim.symbol) continue;
        known = true;
        if (value != shape[d])
          complain(i, "dim " + std::to_string(d) + " ('" + dim.symbol + "') is " + std::to_string(shape[d]) +
                          ", another input has " + std::to_string(value));
      }
      if (!known) symbols.emplace_back(&dim.symbol, shape[d]);
    }
  }
}

}  // namespace asc
