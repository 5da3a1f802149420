#include "schedule/pool.h"

#include <cstring>

namespace asc {

// Class 4k + q holds (4 + q) * 2^k * 16 bytes, starting at 64.
int Pool::class_of(size_t bytes) {
  const size_t units = (bytes + 15) / 16;
  if (units <= 4) return 0;
  const int k = 63 - __builtin_clzll(units - 1) - 2;  // units - 1 in [2^(k+2), 2^(k+3))
  const size_t step = size_t{1} << k;
  const int q = static_cast<int>((units - (step << 2) + step - 1) / step);  // 1…4; 4 is the next power
  return 4 * k + q;
}

size_t Pool::class_bytes(int index) { return (size_t{4} + index % 4) * 16 << (index / 4); }

Block Pool::allocate(size_t bytes) {
  const int index = class_of(bytes);
  if (index >= kClasses) throw OutOfMemoryError("[pool] asked " + std::to_string(bytes) + " bytes; reduce the shapes");
  ++allocations_;
  Block block{nullptr, class_bytes(index), bytes};
  if (!free_[index].empty()) {
    block.data = free_[index].back();
    free_[index].pop_back();
    cached_bytes_ -= block.bytes;
  } else {
    try {
      block.data = device_.allocate(block.bytes);
    } catch (const OutOfMemoryError&) {
      ++retries_;
      make_room();
      block.data = device_.allocate(block.bytes);
    }
  }
  used_bytes_ += block.bytes;
  asked_bytes_ += block.asked;
  ++used_blocks_;
  return block;
}

Block Pool::allocate_result(size_t bytes) {
  const Block block = allocate(bytes);
  if (!computes_ && bytes) std::memset(block.data, 0, bytes);
  return block;
}

void Pool::make_room() {
  for (Holder* holder : holders_) holder->settle();
  for (uint32_t s = 0; s < streams_.count(); ++s) streams_[s].synchronize();
  for (Holder* holder : holders_) holder->give_up();
  trim();
}

void Pool::release(Block block) {
  if (!block.data) return;
  free_[class_of(block.bytes)].push_back(block.data);
  cached_bytes_ += block.bytes;
  used_bytes_ -= block.bytes;
  asked_bytes_ -= block.asked;
  --used_blocks_;
}

void Pool::trim() {
  for (int i = 0; i < kClasses; ++i) {
    for (void* data : free_[i]) device_.release(data, class_bytes(i));
    free_[i].clear();
  }
  cached_bytes_ = 0;
}

}  // namespace asc
