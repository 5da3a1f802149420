// Kernels and their registration. A back end registers for (operator, element types) a tiling function: it chooses
// the implementation for one set of shapes. On the CPU that choice, with its loop structure or JIT-compiled
// primitive, *is* the tiling.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/dtype.h"
#include "device/task.h"
#include "ops/op.h"

namespace asc {

// Immutable result of the tiling stage. Kernels derive from it and static_cast in their launch function.
// Shared by all nodes with the same kernel, attributes and key, so it never holds an operand's address.
struct Tiling {
  virtual ~Tiling() = default;
  virtual size_t bytes() const { return sizeof(Tiling); }  // real size, JIT code included (estimate where unknown)

  LaunchFn launch = nullptr;
  const char* implementation = "";  // static string: "openblas", "onednn:brgconv", "vector", "scalar" …
  size_t workspace_bytes = 0;
  // Bit i: output 0 may lie exactly over input i, whose bytes are as many: no element is read after it was written.
  uint64_t over_inputs = 0;
  int threads = 1;  // that a launch uses; set by create_tiling_with

  // Constant operands in the layout that this tiling wants, made once per (constants, layout) and shared.
  // `inputs` holds the constants' bytes, null where an input is not constant.
  size_t packed_bytes = 0;
  uint64_t packed_layout = 0;  // names all that `pack` depends on besides the constants: with equal functions, layouts
                               // and constants, tilings share one copy. Never 0 when packed_bytes > 0
  void (*pack)(const Tiling& tiling, const void* const* inputs, void* packed) = nullptr;
};

// Options of the device that a tiling may read; part of every tiling key.
struct DeviceOptions {
  int threads = 1;
  bool use_onednn = true;
  int64_t tiling_ns = 0;  // timed device: what making a tiling takes
  bool operator==(const DeviceOptions& o) const {
    return threads == o.threads && use_onednn == o.use_onednn && tiling_ns == o.tiling_ns;
  }
};

class TilingContext : public ShapeContext {
 public:
  TilingContext(const Node& node, const DType* input_types, const Shape* const* input_shapes,
                const HostTensor* const* host_values, int input_count, const DType* output_types,
                const Shape* output_shapes, int output_count, uint64_t constant_inputs, const DeviceOptions& options,
                const void* kernel_data = nullptr)
      : ShapeContext(node, input_types, input_shapes, host_values, input_count),
        output_types_(output_types),
        output_shapes_(output_shapes),
        output_count_(output_count),
        constant_inputs_(constant_inputs),
        options_(options),
        kernel_data_(kernel_data) {}

  int output_count() const { return output_count_; }
  const Shape& output(int i) const { return output_shapes_[i]; }
  DType output_dtype(int i) const { return output_types_[i]; }
  // Whether input i is a compile-time constant, hence may be packed.
  bool is_constant(int i) const { return (constant_inputs_ >> i) & 1u; }
  const DeviceOptions& options() const { return options_; }
  // What the tiling decides to use; the largest number noted counts.
  void note_threads(int threads) const { threads_used_ = threads > threads_used_ ? threads : threads_used_; }
  int threads_used() const { return threads_used_; }
  // Kernel::data of the kernel whose tiling is made.
  const void* kernel_data() const { return kernel_data_; }
  // Throws UnsupportedError("[tiling] <op> '<node>': <what>").
  [[noreturn]] void unsupported(const std::string& what) const;

 private:
  const DType* output_types_;
  const Shape* output_shapes_;
  int output_count_;
  uint64_t constant_inputs_;
  const DeviceOptions& options_;
  mutable int threads_used_ = 1;
  const void* kernel_data_;
};

using TilingFn = std::shared_ptr<const Tiling> (*)(const TilingContext&);

struct Kernel {
  std::string op;
  DTypeSet types;      // of the input named by `type_input`
  int type_input = 0;  // which input decides (Where: 1); nodes without inputs: output 0
  TilingFn tiling = nullptr;
  const void* data = nullptr;  // the back end's own; lives as long as the registry
};

// The kernel's tiling, with the threads that it noted. Throws what the kernel's tiling function throws.
std::shared_ptr<const Tiling> create_tiling_with(const Kernel& kernel, const TilingContext& ctx);

class KernelRegistry {
 public:
  void add(std::string op, DTypeSet types, TilingFn tiling, int type_input = 0, const void* data = nullptr);
  // Used where no entry matches: the null, timed and sim devices accept every operator.
  void set_fallback(TilingFn tiling) { fallback_ = Kernel{"*", kAnyType, 0, tiling, nullptr}; }
  // Null when there is none. `input_types` has kUndefined for absent inputs.
  const Kernel* find(std::string_view op, const std::vector<DType>& input_types, DType output_type) const;
  size_t size() const { return count_; }

 private:
  std::unordered_map<std::string, std::vector<Kernel>> kernels_;
  Kernel fallback_;
  size_t count_ = 0;
};

}  // namespace asc
