// A task is one device entry: a kernel's launch function with its tiling and operands. Plain data, copied freely.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/tensor.h"

namespace asc {

// Result of a launch; anything but kOk puts its detail in Worker::error.
// kLost: the device gave no sign of an end, and may still use what the run was given.
enum class Status : uint8_t { kOk, kOutOfRange, kInvalidValue, kOutOfMemory, kFailed, kLost };

// What a launching thread owns: its scratch memory and its share of the CPUs. One per executor, never shared.
class Worker {
 public:
  explicit Worker(int threads = 1) : threads(threads) {}
  // Scratch of at least `bytes`, 64-byte aligned, valid until the next call. Throws OutOfMemoryError.
  void* scratch(size_t bytes) {
    if (bytes > scratch_bytes_) {
      scratch_ = std::make_unique<Buffer>(bytes);
      scratch_bytes_ = bytes;
    }
    return scratch_ ? scratch_->data() : nullptr;
  }
  Status fail(Status s, std::string what) {
    error = std::move(what);
    return s;
  }

  int threads;        // intra-op threads that a kernel may use
  std::string error;  // of the last failed launch

 private:
  std::unique_ptr<Buffer> scratch_;
  size_t scratch_bytes_ = 0;
};

struct Task;
// Runs on the executor's thread without the GIL. Reads and writes operands through `slots` only. Never throws
// anything but OutOfMemoryError.
using LaunchFn = Status (*)(const Task& task, void* const* slots, Worker& worker);

struct Task {
  LaunchFn launch = nullptr;
  const void* tiling = nullptr;        // the kernel's Tiling; outlives every run that uses the task
  const uint32_t* operands = nullptr;  // slot numbers: inputs, outputs, then workspace, packed, extent
  uint16_t input_count = 0, output_count = 0;
  uint32_t node = 0;  // index in the segment, for spans and errors

  template <typename T>
  const T* input(void* const* slots, int i) const {
    return static_cast<const T*>(slots[operands[i]]);
  }
  template <typename T>
  T* output(void* const* slots, int i) const {
    return static_cast<T*>(slots[operands[input_count + i]]);
  }
  bool has_input(void* const* slots, int i) const { return i < input_count && slots[operands[i]] != nullptr; }
  bool has_output(void* const* slots, int i) const {
    return i < output_count && slots[operands[input_count + i]] != nullptr;
  }
  // Tiling::workspace_bytes of scratch that lives for this launch.
  void* workspace(void* const* slots) const { return slots[operands[input_count + output_count]]; }
  // Constants in the layout that the tiling asked for (Tiling::packed_bytes).
  const void* packed(void* const* slots) const { return slots[operands[input_count + output_count + 1]]; }
  // Data-dependent operators only: kMaxRank dims per output, written by the kernel.
  int64_t* extent(void* const* slots) const {
    return static_cast<int64_t*>(slots[operands[input_count + output_count + 2]]);
  }
};

constexpr int kExtraOperands = 3;  // workspace, packed, extent

}  // namespace asc
