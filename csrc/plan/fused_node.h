// Groups of operators merged to nodes that run as one task each: the operators stay in the node's body.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ops/fused.h"
#include "plan/builder.h"
#include "plan/uses.h"

namespace asc {

class FusedNodes {
 public:
  // Both outlive it.
  FusedNodes(LevelBuilder& b, const Uses& uses) : b_(b), uses_(uses) {}

  // One node for those with these positions, ascending, of whose results only the last one's is read elsewhere. Their
  // contents move into it.
  PlanNode merge(const std::vector<int>& group);

 private:
  std::shared_ptr<FusedBody> find_body(const std::vector<int>& group, PlanNode& fused);
  std::shared_ptr<FusedBody> share(std::shared_ptr<FusedBody> made);
  ValueId add_typed(Graph& body, ValueId like) const;
  PlanNode simplified(const PlanNode& p) const;
  float constant_number(ValueId v) const;
  void note_number(Node* n, size_t input, const char* name) const;
  Node make_step(const PlanNode& p, const std::vector<ValueId>& ids, Graph& body) const;

  LevelBuilder& b_;
  const Uses& uses_;
  std::multimap<std::string, std::shared_ptr<FusedBody>> bodies_;  // by their operators
};

}  // namespace asc
