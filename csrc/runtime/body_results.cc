#include "runtime/body_results.h"

namespace asc {

void* BodyResults::place(size_t i, size_t bytes) {
  Place& p = places_[i];
  if (void* target = std::exchange(p.target, nullptr); target && p.target_bytes == bytes) return target;
  if (p.former.data && p.former.asked == bytes) {
    p.result = std::exchange(p.former, Block{});
    return p.result.data;
  }
  pool_.release(std::exchange(p.former, Block{}));
  p.result = pool_.allocate_result(bytes);
  return p.result.data;
}

}  // namespace asc
