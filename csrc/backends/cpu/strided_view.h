// A tensor seen through transpositions, expansions and reshapes that moved nothing: where its elements lie. Every
// dimension is a list of loops, so that dimensions of different strides can be merged and split again.
#pragma once

#include <cstdint>
#include <vector>

#include "base/shape.h"

namespace asc::cpu {

class StridedView {
 public:
  struct Loop {
    int64_t count, stride;  // elements
  };

  // A tensor whose elements lie one behind the other.
  explicit StridedView(const Shape& shape);

  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t size(int dim) const;

  // Dimension i becomes what dimension perm[i] was. `perm` names each dimension once.
  void transpose(const std::vector<int64_t>& perm);
  // False where a dimension is neither 1 nor as asked; as NumPy broadcasts.
  bool expand(const Shape& to);
  // False where the new dimensions do not divide the old ones. Without empty dimensions.
  bool reshape(const Shape& to);

  // The stride of a dimension that is one loop, false where it is several; 0 where it has one element only.
  bool stride(int dim, int64_t* result) const;
  // The offset of element `index` of a dimension.
  int64_t offset(int dim, int64_t index) const;

 private:
  std::vector<std::vector<Loop>> dims_;  // loops of one element are left out
};

}  // namespace asc::cpu
