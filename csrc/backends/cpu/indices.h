// Index tensors of gather and scatter kernels: int32 or int64, negative entries count from the back.
#pragma once

#include <cstdint>
#include <string>

#include "device/task.h"

namespace asc::cpu {

class IndexReader {
 public:
  IndexReader(const void* data, bool is_int64) : data_(data), is_int64_(is_int64) {}
  int64_t operator[](int64_t i) const {
    return is_int64_ ? static_cast<const int64_t*>(data_)[i] : static_cast<const int32_t*>(data_)[i];
  }

 private:
  const void* data_;
  bool is_int64_;
};

// Index in [0, n), or negative when `index` is out of range.
inline int64_t wrap_index(int64_t index, int64_t n) {
  if (index < 0) index += n;
  return index < n ? index : -1;
}

inline Status fail_index(Worker& worker, const char* where, int64_t index, int64_t n) {
  return worker.fail(Status::kOutOfRange, std::string("[") + where + "] index out of range: " + std::to_string(index) +
                                              " for an axis of " + std::to_string(n) + "; check the indices");
}

}  // namespace asc::cpu
