// Host memory with a byte limit: what the devices of this package allocate from.
#pragma once

#include <atomic>
#include <cstddef>
#include <string>

namespace asc {

// Thread-safe. Sizes count in whole units of kAlignment, as they are allocated.
class LimitedMemory {
 public:
  // `owner` names the device in errors; `limit_bytes` 0: no limit.
  LimitedMemory(std::string owner, size_t limit_bytes) : owner_(std::move(owner)), limit_bytes_(limit_bytes) {}
  LimitedMemory(const LimitedMemory&) = delete;
  LimitedMemory& operator=(const LimitedMemory&) = delete;

  // 64-byte aligned, uninitialised, never null. Throws OutOfMemoryError (asked, used, limit).
  void* allocate(size_t bytes);
  // `bytes` as given to allocate; null is ignored.
  void release(void* data, size_t bytes);
  size_t used_bytes() const { return used_; }

 private:
  void reserve(size_t asked, size_t size);
  [[noreturn]] void throw_exhausted(size_t asked, size_t used) const;

  const std::string owner_;
  const size_t limit_bytes_;
  std::atomic<size_t> used_{0};
};

}  // namespace asc
