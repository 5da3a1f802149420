#include "backends/cpu/strided_view.h"

namespace asc::cpu {

StridedView::StridedView(const Shape& shape) : dims_(static_cast<size_t>(shape.rank())) {
  int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] != 1) dims_[i].push_back({shape[i], stride});
    stride *= shape[i];
  }
}

int64_t StridedView::size(int dim) const {
  int64_t n = 1;
  for (const Loop& l : dims_[dim]) n *= l.count;
  return n;
}

void StridedView::transpose(const std::vector<int64_t>& perm) {
  std::vector<std::vector<Loop>> turned;
  for (int64_t p : perm) turned.push_back(dims_[p]);
  dims_ = std::move(turned);
}

bool StridedView::expand(const Shape& to) {
  if (to.rank() < rank()) return false;
  dims_.insert(dims_.begin(), static_cast<size_t>(to.rank() - rank()), {});
  for (int i = 0; i < rank(); ++i) {
    if (size(i) == to[i]) continue;
    if (size(i) != 1) return false;
    dims_[i] = {{to[i], 0}};
  }
  return true;
}

bool StridedView::reshape(const Shape& to) {
  std::vector<Loop> left;  // innermost first
  for (int i = rank() - 1; i >= 0; --i)
    for (size_t k = dims_[i].size(); k-- > 0;) left.push_back(dims_[i][k]);
  std::vector<std::vector<Loop>> dims(static_cast<size_t>(to.rank()));
  size_t next = 0;
  for (int i = to.rank() - 1; i >= 0; --i) {
    for (int64_t need = to[i]; need != 1;) {
      if (next == left.size() || need == 0) return false;
      Loop& l = left[next];
      if (need % l.count == 0) {
        dims[i].insert(dims[i].begin(), l);
        need /= l.count;
        ++next;
      } else if (l.count % need == 0) {
        dims[i].insert(dims[i].begin(), {need, l.stride});
        l = {l.count / need, l.stride * need};
        need = 1;
      } else {
        return false;
      }
    }
  }
  if (next != left.size()) return false;
  dims_ = std::move(dims);
  return true;
}

bool StridedView::stride(int dim, int64_t* result) const {
  const std::vector<Loop>& loops = dims_[dim];
  *result = loops.empty() ? 0 : loops.back().stride;
  for (size_t k = 0; k + 1 < loops.size(); ++k)
    if (loops[k].stride != loops[k + 1].stride * loops[k + 1].count) return false;
  return true;
}

int64_t StridedView::offset(int dim, int64_t index) const {
  int64_t sum = 0;
  for (size_t k = dims_[dim].size(); k-- > 0;) {
    const Loop& l = dims_[dim][k];
    sum += index % l.count * l.stride;
    index /= l.count;
  }
  return sum;
}

}  // namespace asc::cpu
