// Products that a Loop computes step by step, and all at once before it: MatMul(Gather(x, t), w) is
// Gather(MatMul(x, w), t) where x comes from outside, w is constant and t advances by one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/builder.h"

namespace asc {

// What a body reads that is no result of its own.
struct OuterValue {
  int input = -1;                              // the input of the body, and of the Loop; -1: a constant of the body
  std::shared_ptr<const HostTensor> constant;  // null: none
};

struct StepProduct {
  std::string name;
  int x = 0;                 // an input
  OuterValue weights, bias;  // no bias: neither input nor constant
  DType type = DType::kUndefined;
  std::optional<Attributes> cast;  // of the Cast of x before it, where there is one
  bool turns_weights = false;
  int64_t row_axis = -2;  // where x gets a dimension of 1, so that a result of another rank is refused as before
};

// What a Loop tells of itself to its body, and what its body asks for: one more input each, in their order.
struct LoopSteps {
  size_t carried = 0;
  int64_t trips = -1;                  // at most; -1: not known
  std::vector<bool> starts_as_number;  // by input: it has no dimensions when the loop begins
  std::vector<StepProduct> products;
};

// In the body: reads rows of the products of all steps instead of computing those of each.
void find_step_products(LevelBuilder& body);
// Around it: computes them before the Loop, and adds them to what it captures.
void add_step_products(LevelBuilder& b, PlanNode& loop, const LoopSteps& steps);

}  // namespace asc
