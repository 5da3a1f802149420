#include "runtime/free_dims.h"

#include <string>
#include <utility>

namespace asc {

FreeDims::FreeDims(const Plan& plan) : plan_(plan) {
  for (ValueId v : plan.inputs) {
    Shape shape;
    for (const Dim& dim : plan.values[v].type.dims) shape.push_back(dim.value);
    shapes_.push_back(shape);
  }
  lay_out();
}

void FreeDims::lay_out() {
  std::vector<std::pair<const std::string*, size_t>> symbols;
  places_.clear();
  first_.clear();
  for (size_t i = 0; i < shapes_.size(); ++i) {
    const TensorType& type = plan_.values[plan_.inputs[i]].type;
    for (int d = 0; d < shapes_[i].rank(); ++d) {
      const Dim* const dim = type.has_rank ? &type.dims[d] : nullptr;
      if (dim && dim->is_static()) continue;
      size_t number = first_.size();
      if (dim && !dim->symbol.empty()) {
        for (const auto& [name, known] : symbols)
          if (*name == dim->symbol) number = known;
        if (number == first_.size()) symbols.emplace_back(&dim->symbol, number);
      }
      places_.push_back({i, d, number});
      if (number == first_.size()) first_.push_back(places_.back());
    }
  }
}

bool FreeDims::read(const std::vector<TensorView>& inputs, std::vector<int64_t>& numbers) {
  bool is_same = true;
  for (size_t i = 0; i < inputs.size(); ++i) {
    is_same = is_same && inputs[i].shape.rank() == shapes_[i].rank();
    if (inputs[i].shape.rank() != shapes_[i].rank()) shapes_[i] = inputs[i].shape;
  }
  if (!is_same) lay_out();
  numbers.clear();
  for (const Place& p : first_) numbers.push_back(inputs[p.input].shape[p.axis]);
  return is_same;
}

std::vector<Shape> FreeDims::shapes(const std::vector<int64_t>& numbers) const {
  std::vector<Shape> shapes = shapes_;
  for (const Place& p : places_) shapes[p.input][p.axis] = numbers[p.number];
  return shapes;
}

}  // namespace asc
