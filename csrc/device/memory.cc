#include "device/memory.h"

#include <cstdint>
#include <cstdlib>

#include "base/error.h"
#include "base/tensor.h"

namespace asc {

namespace {

size_t unit_size(size_t bytes) { return round_up(bytes ? bytes : 1); }

}  // namespace

void* LimitedMemory::allocate(size_t bytes) {
  if (bytes > PTRDIFF_MAX - kAlignment) throw_exhausted(bytes, used_);  // rounding up would wrap around
  const size_t size = unit_size(bytes);
  reserve(bytes, size);
  void* data = std::aligned_alloc(kAlignment, size);
  if (data) return data;
  throw_exhausted(bytes, used_ -= size);
}

void LimitedMemory::release(void* data, size_t bytes) {
  if (!data) return;
  std::free(data);
  used_ -= unit_size(bytes);
}

// A compare-exchange rather than an addition: an attempt that fails never makes a smaller one fail beside it.
void LimitedMemory::reserve(size_t asked, size_t size) {
  size_t used = used_;
  do {
    if (limit_bytes_ && (used > limit_bytes_ || size > limit_bytes_ - used)) throw_exhausted(asked, used);
  } while (!used_.compare_exchange_weak(used, used + size));
}

void LimitedMemory::throw_exhausted(size_t asked, size_t used) const {
  const std::string limit = limit_bytes_ ? std::to_string(limit_bytes_) + " bytes" : "none";
  const char* next_step =
      limit_bytes_ ? "raise memory_limit_bytes or run smaller inputs" : "run smaller inputs or free host memory";
  throw OutOfMemoryError("[" + owner_ + ".allocate] out of memory: asked " + std::to_string(asked) + " bytes, used " +
                         std::to_string(used) + " bytes, limit " + limit + "; " + next_step);
}

}  // namespace asc
