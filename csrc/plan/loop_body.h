// The body of a Loop as the passes that move work before the loop see it: what comes from outside, and what counts.
// Valid while the level's nodes are as they were.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/byte_values.h"
#include "plan/uses.h"

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

// A condition that a counter and a limit decide: it holds after max(1, limit - start + more) - 1 iterations.
struct TripLimit {
  int start = 0;  // an input
  OuterValue limit;
  int64_t more = 0;
};

// What a Loop tells of itself to its body, and what the body leaves to it.
struct LoopSteps {
  size_t carried = 0;
  int64_t trips = -1;                  // at most; -1: not known
  std::vector<bool> starts_as_number;  // by input: it has no dimensions when the loop begins
  std::vector<StepProduct> products;   // one more input of the body each, in this order
  std::vector<TripLimit> limits;       // instead of the condition, which is constant
};

class LoopBody {
 public:
  // What an index is: by how much it counts with each step (1 or -1; 0: it does not), and whether it has no dimensions.
  struct Counter {
    int64_t step = 0;
    bool is_number = false;
  };

  explicit LoopBody(const LevelBuilder& b) : b_(b), loop_(*b.loop), uses_(b), inputs_(b.graph.inputs()) {
    for (size_t i = 0; i < inputs_.size(); ++i) positions_[inputs_[i]] = static_cast<int>(i);
  }

  const Uses& uses() const { return uses_; }
  const PlanNode* producer(ValueId v) const {
    const int i = v == kNoValue ? -1 : uses_.producer(v);
    return i < 0 ? nullptr : &b_.nodes[static_cast<size_t>(i)];
  }
  // Among the inputs of the body; -1: it is none.
  int position(ValueId v) const {
    const auto found = positions_.find(v);
    return found == positions_.end() ? -1 : found->second;
  }
  // What a value is another name of.
  ValueId origin(ValueId v) const {
    for (const PlanNode* p = producer(v); p && p->node.op == "Identity"; p = producer(v)) v = p->node.inputs[0];
    return v;
  }
  bool is_condition(ValueId v) const { return v == inputs_[1]; }
  bool is_number_of_iteration(ValueId v) const { return v == inputs_[0]; }
  bool is_carried(ValueId v) const { return position(v) >= 2 && !is_captured(v); }
  bool is_captured(ValueId v) const { return position(v) >= static_cast<int>(2 + loop_.carried); }
  // The same at each step.
  bool is_fixed(ValueId v) const { return constant_of(b_, v) || is_captured(v); }
  bool is_number(ValueId v) const { return b_.static_shapes[v] && b_.static_shapes[v]->rank() == 0; }
  OuterValue outer(ValueId v) const {
    return {is_captured(v) ? position(v) : -1, v == kNoValue ? nullptr : b_.values[v].constant};
  }

  // The carried value that v is the next one of; kNoValue: none.
  ValueId next_of(ValueId v) const {
    for (size_t i = 0; i < loop_.carried && 1 + i < b_.outputs.size(); ++i)
      if (origin(b_.outputs[1 + i]) == origin(v)) return inputs_[2 + i];
    return kNoValue;
  }

  // Of a carried value: its next one is itself and one, or less one.
  Counter carried(ValueId v) const {
    const auto input = static_cast<size_t>(position(v));
    const PlanNode* next = input - 1 < b_.outputs.size() ? producer(origin(b_.outputs[input - 1])) : nullptr;
    if (!next || (next->node.op != "Add" && next->node.op != "Sub")) return {};
    for (size_t i : {0, 1}) {
      const ValueId other = next->node.inputs[1 - i];
      const int64_t step = unit(other);
      if (next->node.inputs[i] != v || step == 0 || (i == 1 && next->node.op == "Sub")) continue;
      return {next->node.op == "Add" ? step : -step, loop_.starts_as_number[input] && is_number(other)};
    }
    return {};
  }

 private:
  // 1 or -1; 0: it is neither.
  int64_t unit(ValueId v) const {
    const HostTensor* c = constant_of(b_, v);
    if (!c || c->shape.num_elements() != 1 || (c->dtype != DType::kInt32 && c->dtype != DType::kInt64)) return 0;
    const int64_t step = int_values(*c)[0];
    return step == 1 || step == -1 ? step : 0;
  }

  const LevelBuilder& b_;
  const LoopSteps& loop_;
  const Uses uses_;                    // what is replaced still makes the same value
  const std::vector<ValueId> inputs_;  // of the body, before any was added
  std::map<ValueId, int> positions_;   // among them
};

// step_products.cc: in the body, reads rows of the products of all steps instead of computing those of each; around
// it, computes them before the Loop, and adds them to what it captures.
void find_step_products(LevelBuilder& body);
void add_step_products(LevelBuilder& b, PlanNode& loop, const LoopSteps& steps);
// trip_limits.cc: in the body, makes a condition that counts constant; around it, counts the trips before the Loop.
void find_trip_limits(LevelBuilder& body);
void add_trip_limits(LevelBuilder& b, PlanNode& loop, const LoopSteps& steps);

}  // namespace asc
