// Nodes on channels-last tensors in a graph whose convolutions have channels first: each stands between transpositions,
// most of which meet their inverse in transposes.cc.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/builder.h"

namespace asc {

// Whether what the operator makes of values with channels last can have them last, too, as it is.
bool passes_order_on(const std::string& op);
// Whether a Transpose puts the channels first that lie last in what it reads.
bool turns_to_first(const Node& transpose);

// Appends nodes to the level, and knows which values are made from such nodes.
class LastOrder {
 public:
  explicit LastOrder(LevelBuilder& b) : b_(b) {}

  // Passes on the order of what the node reads, where it acts on elements, joins and cuts channels, or turns.
  void emit(PlanNode p);
  // `p` reads x with channels last; its result has them last, and what it stands for has them first. Parts of the node
  // keep channels first: a saved file can be run operator by operator.
  void emit_between(int rank, PlanNode p, ValueId x);

  // The rank of a value that is made from values with channels last; 0: it is not.
  int last_rank(ValueId v) const {
    return static_cast<size_t>(v) < last_rank_.size() ? last_rank_[static_cast<size_t>(v)] : 0;
  }

 private:
  void wrap_parts(PlanNode& p, int rank, ValueId x, ValueId last_x, ValueId out, ValueId last_y);
  PlanNode make_transpose(ValueId from, ValueId to, std::vector<int64_t> perm);

  LevelBuilder& b_;
  std::vector<int> last_rank_;          // by value
  std::map<ValueId, ValueId> last_of_;  // values that were turned
};

}  // namespace asc
