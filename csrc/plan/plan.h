// The immutable result of compilation: a list of segments per level, levels nested where control flow holds bodies.
// A plan knows no shape that can vary, no thread, no clock and no device. Shared freely between threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "ops/op.h"

namespace asc {

struct Plan;

// Where a value lives while a segment runs. Tasks address operands by slot number through a table of pointers.
enum class SlotKind : uint8_t {
  kNull,      // slot 0: absent operand
  kConstant,  // compile-time constant
  kHost,      // host value that a task reads as data
  kInput,     // bound before the segment runs: plan input or value of an earlier segment
  kOutput,    // bound before its producer runs: plan output or value that a later segment reads
  kInternal,  // lives inside the segment
  kWorkspace,
  kPacked,  // constants in the layout of the current tiling
  kExtent,  // dims written by a data-dependent task
};

struct Slot {
  SlotKind kind = SlotKind::kNull;
  ValueId value = kNoValue;  // the root value (constant, host, input, output, internal)
  int32_t node = -1;         // segment-local producer (internal, output, workspace, packed, extent)
};

struct PlanValue {
  std::string name;
  TensorType type;  // dtype always known; dims as declared, or inferred where static
  std::shared_ptr<const HostTensor> constant;
  ValueId root = kNoValue;    // the value whose bytes this one shares (itself unless produced by a data view)
  bool is_host = false;       // its contents are known on the host: a shape, a tiling or a branch needs them
  bool is_read_back = false;  // is_host, but computed on the device: read at a sync point
  bool has_extent = false;    // its shape is known only after its producer ran
};

struct PlanNode {
  Node node;  // attributes and names; inputs and outputs as plan values
  const Op* op = nullptr;
  uint32_t number = 0;  // unique in the whole tree, in compile order
  bool is_on_host = false;
  bool is_unread = false;        // only the shapes of its results are read: it never runs
  bool is_copy = false;          // inserted: a result that would alias an input, a constant or another result
  std::vector<Node> parts;       // of a fused node, or one of our own: the operators that it stands for, in order
  std::vector<OwnNode> own;      // of a fused node: those of its parts that were nodes of our own
  uint64_t constant_inputs = 0;  // bit i: input i is a compile-time constant
  std::vector<DType> input_types, output_types;
  std::vector<uint32_t> operands;    // slots: inputs, outputs, workspace, packed, extent (tasks only)
  std::vector<uint32_t> dies_after;  // internal slots whose last reader is this node

  bool is_view() const { return op->kind == OpKind::kView && !is_copy; }
  bool is_task() const { return !is_on_host && !is_unread && !is_view() && op->kind != OpKind::kControl; }
};

// Of the parts of a node: between the order of dimensions that the node works in and that of the graph.
inline bool is_turn(const Node& part) { return part.op == "Transpose" && part.name.rfind("transpose_to_", 0) == 0; }

// An attribute of a product in front of a Loop, whose steps read its rows (plan/step_products.cc).
constexpr char kOfAllSteps[] = "of_all_steps";
inline bool is_of_all_steps(const Node& n) { return n.attributes.get_int(kOfAllSteps, 0) != 0; }

enum class SegmentKind : uint8_t { kTasks, kIf, kLoop };

struct Segment {
  SegmentKind kind = SegmentKind::kTasks;
  std::vector<PlanNode> nodes;                      // execution order; control: exactly one
  std::vector<std::shared_ptr<const Plan>> bodies;  // If: then, else; Loop: body
  std::vector<ValueId> inputs;         // values from outside that the segment reads (constants excepted), by first use
  std::vector<ValueId> outputs;        // values that outlive the segment
  std::vector<ValueId> read_backs;     // device values whose contents the host needs after this segment
  std::vector<uint32_t> extent_nodes;  // local nodes with data-dependent extents, known after this segment
  std::vector<Slot> slots;
  std::vector<uint32_t> slot_of;  // by ValueId (root resolved); 0 where the segment does not touch the value
  bool ends_in_sync() const { return !read_backs.empty() || !extent_nodes.empty(); }
};

struct Plan {
  std::string name;
  std::vector<PlanValue> values;
  std::vector<ValueId> inputs, outputs;
  std::vector<Segment> segments;
  std::vector<ValueId> host_outputs;  // by output position: the host value that the caller reads, or kNoValue
  std::vector<bool> host_inputs;      // by input position: contents are read on the host, so they enter the signature
  std::vector<std::string> dynamic_reasons;  // why shapes can vary; empty: one signature serves every run
  uint32_t node_count = 0;                   // of the whole tree (root plan only)
  bool is_rewritten = false;                 // all rewrites of a graph were done: its folded graph needs none
  bool is_channels_last = false;             // they were those for a device that wants channels last

  bool is_static() const { return dynamic_reasons.empty(); }
  // Byte-stable description, one line per node.
  std::string text() const;
};

// Computes a node on the host. `values[i]` is null where input i is absent, or (operators that read only shapes) where
// only `shapes[i]` is known. Throws asc::Error when it cannot.
using FoldFn = std::function<std::vector<HostTensor>(const PlanNode&, const std::vector<const HostTensor*>& values,
                                                     const std::vector<const Shape*>& shapes)>;

struct CompileOptions {
  FoldFn fold;
  size_t fold_limit_bytes = size_t{64} << 20;  // larger results stay nodes
  bool fuse = true;                            // make operators one task, move transpositions
  bool hoist = true;                           // compute in front of loops what they know before they run
  bool channels_last = false;                  // convolutions of images on channels-last tensors; only with `fuse`
};

// Sorts and checks the graph, infers types, folds constants, drops dead nodes, classifies values, cuts segments.
// Throws GraphError, UnsupportedError (lists every unsupported operator), PlanError.
std::shared_ptr<const Plan> compile_plan(Graph graph, const CompileOptions& options);

// The graph that the plan computes: constants folded, dead nodes gone, element types known, bodies likewise. Compiling
// it with the same options gives the same plan (up to numbers) without the folding and the rewriting. Shares the
// constants with the plan.
Graph folded_graph(const Plan& plan);

}  // namespace asc
