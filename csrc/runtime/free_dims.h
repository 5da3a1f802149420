// The dims of a plan's inputs that can vary, each once: where several share a symbol, or the model fixes a dim, one
// number says it all.
#pragma once

#include <vector>

#include "base/tensor.h"
#include "plan/plan.h"

namespace asc {

class FreeDims {
 public:
  explicit FreeDims(const Plan& plan);

  // Copies the free dims of the inputs, which fit the plan. False where an input whose rank the model leaves open has
  // another rank than last time: earlier numbers then mean something else.
  bool read(const std::vector<TensorView>& inputs, std::vector<int64_t>& numbers);
  // The shapes of the inputs that the numbers stand for.
  std::vector<Shape> shapes(const std::vector<int64_t>& numbers) const;

 private:
  struct Place {
    size_t input;
    int axis;
    size_t number;
  };

  void lay_out();

  const Plan& plan_;
  std::vector<Shape> shapes_;  // by input, as they came last
  std::vector<Place> places_;  // of every dim that is not fixed
  std::vector<Place> first_;   // of every number
};

}  // namespace asc
