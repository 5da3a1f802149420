// Operators: one registration each, with the newest ONNX semantics. To add one, write its rules in the file of its
// family and name it in that file's register_ function. Kernels are registered apart, by back ends.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"
#include "base/tensor.h"
#include "graph/graph.h"

namespace asc {

// What infer_shape and tiling may read of a node: attributes (compile-time constants), dtypes, input shapes, and the
// host values that the operator declared. Reads are recorded as bits so that tests can prove that nothing outside
// the key is read.
class ShapeContext {
 public:
  ShapeContext(const Node& node, const DType* input_types, const Shape* const* input_shapes,
               const HostTensor* const* host_values, int input_count)
      : node_(node), types_(input_types), shapes_(input_shapes), hosts_(host_values), input_count_(input_count) {}

  int input_count() const { return input_count_; }
  bool has_input(int i) const { return i < input_count_ && shapes_[i] != nullptr; }
  DType dtype(int i) const { return types_[i]; }
  const Shape& input(int i) const {
    shape_reads_ |= uint64_t{1} << (i < 63 ? i : 63);
    return *shapes_[i];
  }
  // The value of an input that the operator declared in host_inputs. Throws GraphError where it is absent.
  const HostTensor& host(int i) const;
  bool has_host(int i) const { return i < input_count_ && hosts_[i] != nullptr; }
  std::vector<int64_t> ints(int i) const { return int_values(host(i)); }

  const Attributes& attributes() const { return node_.attributes; }
  int64_t attr(std::string_view name, int64_t fallback) const { return node_.attributes.get_int(name, fallback); }
  const std::string& node_name() const { return node_.name; }
  const Node& node() const { return node_; }

  uint64_t shape_reads() const { return shape_reads_; }
  uint64_t host_reads() const { return host_reads_; }

 protected:
  const Node& node_;
  const DType* types_;
  const Shape* const* shapes_;      // null where an input is absent
  const HostTensor* const* hosts_;  // null where the value is not a host value
  int input_count_;
  mutable uint64_t shape_reads_ = 0, host_reads_ = 0;
};

class InferContext : public ShapeContext {
 public:
  InferContext(const Node& node, const DType* input_types, const Shape* const* input_shapes,
               const HostTensor* const* host_values, int input_count, Shape* outputs, int output_count)
      : ShapeContext(node, input_types, input_shapes, host_values, input_count),
        outputs_(outputs),
        output_count_(output_count) {}

  int output_count() const { return output_count_; }
  // Ignored where the node does not have that output.
  void set_output(int i, const Shape& s) {
    if (i < output_count_) outputs_[i] = s;
  }
  // Output i < output_count(), to be built in place: copying a shape that was just written piece by piece stalls.
  Shape& output(int i) { return outputs_[i]; }
  // Throws GraphError("[infer_shape] <op> '<node>': <what>").
  [[noreturn]] void fail(const std::string& what) const;

 private:
  Shape* outputs_;
  int output_count_;
};

enum class OpKind : uint8_t {
  kTask,           // shape of outputs follows from shapes and host values of inputs
  kView,           // as kTask, and output 0 holds the same bytes as input 0: costs nothing
  kDataDependent,  // output shape depends on data: infer_shape gives the upper bound, the kernel writes the extent
  kControl,        // If, Loop, Scan: run by the runtime, no kernel
};

struct Op {
  std::string name;
  int min_inputs = 0, max_inputs = 0;    // max -1: variadic
  int min_outputs = 1, max_outputs = 1;  // max -1: variadic
  OpKind kind = OpKind::kTask;
  bool is_host_able = false;   // cheap integer/shape arithmetic: may be computed on the host where its value is needed
  bool is_host_call = false;   // computed by a callable outside the core (host_call.h): always on the host
  bool is_random = false;      // other results at every run: never computed ahead
  bool is_shape_only = false;  // reads no data of its inputs (Shape, Size): always a host value
  uint64_t host_inputs = 0;    // bit i: infer_shape or tiling reads the value of input i
  void (*infer_shape)(InferContext&) = nullptr;
  // Element type of output i. `inputs` holds kUndefined for absent inputs. Throws GraphError for mixed types.
  DType (*infer_dtype)(const Node&, const std::vector<DType>& inputs, int output) = nullptr;
};

class OpRegistry {
 public:
  // All operators, registered once; thread-safe, immutable afterwards.
  static const OpRegistry& instance();
  const Op* find(std::string_view name) const;  // null when unknown
  std::vector<std::string> names() const;

  void add(Op op);

 private:
  std::vector<Op> ops_;  // sorted by name after construction
};

// Families, one file each.
void register_elementwise_ops(OpRegistry&);
void register_tree_ops(OpRegistry&);
void register_matmul_ops(OpRegistry&);
void register_movement_ops(OpRegistry&);  // Reshape, Transpose, Slice, Concat, Gather, Pad, Expand, …
void register_reduce_ops(OpRegistry&);
void register_nn_ops(OpRegistry&);        // Conv, pooling, normalisation, Softmax, LSTM
void register_image_ops(OpRegistry&);     // Resize, NonMaxSuppression
void register_signal_ops(OpRegistry&);    // DFT, STFT
void register_quantize_ops(OpRegistry&);  // QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, MatMulInteger
void register_generate_ops(OpRegistry&);  // Shape, Size, Range, ConstantOfShape, Constant, NonZero, …
void register_random_ops(OpRegistry&);
void register_control_ops(OpRegistry&);
void register_host_call_ops(OpRegistry&);
void register_extension_ops(OpRegistry&);

// Helpers shared by the families.
int64_t normalize_axis(int64_t axis, int rank, const ShapeContext& ctx);  // throws GraphError out of range
// NumPy broadcasting of two shapes; throws GraphError naming the node.
Shape broadcast_shapes(const Shape& a, const Shape& b, const ShapeContext& ctx);
DType same_dtype_as_first(const Node&, const std::vector<DType>& inputs, int output);

}  // namespace asc
