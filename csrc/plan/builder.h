// Passes of compile_plan, one file each, working on one level. Internal to plan/.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace asc {

struct LoopSteps;  // loop_body.h

// State of one level while it is compiled.
struct LevelBuilder {
  Graph graph;
  const CompileOptions* options = nullptr;
  uint32_t* next_number = nullptr;
  bool is_body = false;
  LoopSteps* loop = nullptr;       // of the body of a Loop
  std::vector<bool> host_outputs;  // by output position: the caller needs the contents on the host

  std::vector<PlanValue> values;
  std::vector<std::optional<Shape>> static_shapes;                 // by value
  std::vector<PlanNode> nodes;                                     // live nodes in topological order
  std::map<int, std::vector<std::shared_ptr<const Plan>>> bodies;  // by PlanNode::number
  std::map<ValueId, Node> dequantized;  // constants that folding made: the DequantizeLinear that gave them
  // Products of bfloat16 with constant weights, by their result in float32: the Cast that gives the weights in float32.
  std::map<ValueId, Node> half_products;
  std::vector<ValueId> outputs;
};

// types.cc: element types, static shapes, constant folding, bodies. `add_node` appends one node, or its results as
// constants; `describe_node` only checks its arity and infers its types.
PlanNode describe_node(const LevelBuilder& b, Node n);
void add_node(LevelBuilder& b, Node n);
// own_nodes.cc: the nodes of our own that a graph brings. `check_own_nodes` looks whether they are in place,
// `add_own_node` checks and adds one with its parts, and `check_sources` looks whether what is left of the graph
// computes everything that it reads, before it reads it, once. All throw GraphError.
void check_own_nodes(const Graph& graph);
void add_own_node(LevelBuilder& b, OwnNode own);
void check_sources(const LevelBuilder& b);
// widen.cc: adds all nodes, half-precision arithmetic in float32.
void infer_types_and_fold(LevelBuilder& b);
// bytes.cc: QuantizeLinear before what only moves elements, so that bytes are moved. quantized.cc: products, pooling
// and resizing between DequantizeLinear and QuantizeLinear on bytes, channels last.
void move_quantization(LevelBuilder& b);
void compute_on_bytes(LevelBuilder& b);
// half_products.cc: products with bfloat16 weights.
void keep_bfloat16_weights(LevelBuilder& b);
// transposes.cc: transpositions behind element-wise operators and, if asked to, conversions.
void move_transposes(LevelBuilder& b, bool passes_conversions);
// squeezes.cc: the Squeeze behind a convolution, and what follows, up to the Unsqueeze that undoes it.
void move_squeezes(LevelBuilder& b);
// channels_last.cc: convolutions of images, and what lies between them, with channels last, if the options say so; says
// whether there are any.
bool arrange_channels_last(LevelBuilder& b);
// conv_constants.cc: normalisation and arithmetic with constants by the convolution before it. hard_activations.cc and
// gelus.cc: HardSigmoid, HardSwish and Gelu where they are spelt out.
void join_conv_constants(LevelBuilder& b);
void find_hard_activations(LevelBuilder& b);
void find_gelus(LevelBuilder& b);
// pads.cc: padding with zeros by the convolutions and averages that read it.
void join_pads(LevelBuilder& b);
// prune.cc: lets readers of an Identity read what it reads; drops nodes that no result needs; inserts copies for
// results that would alias.
void skip_identities(LevelBuilder& b);
void prune(LevelBuilder& b);
void insert_result_copies(LevelBuilder& b);
// classify.cc: host values by need; roots of views.
void classify(LevelBuilder& b);
void find_roots(LevelBuilder& b);
// unread.cc: marks tasks of whose results only the shapes are read.
void find_unread(LevelBuilder& b);
// fuse.cc: operators that become one task. Element-wise ones act on each element by itself, and broadcast.
bool is_element_wise(const std::string& op);
bool is_conversion(const std::string& op);  // between float32 and bytes
void fuse(LevelBuilder& b);
// segments.cc: levels, segments, slots, lifetimes.
std::vector<Segment> cut_segments(LevelBuilder& b);

// compile.cc: compiles one level (recursively its bodies).
std::shared_ptr<const Plan> compile_level(LevelBuilder& b);
// Compiles body `graph` of a control node; `loop` where it is a Loop. `constants[i]` is set where body input i is a
// compile-time constant.
struct BodyInputs {
  std::vector<DType> types;
  std::vector<std::shared_ptr<const HostTensor>> constants;
  std::vector<std::optional<Shape>> shapes;
};
std::shared_ptr<const Plan> compile_body(const LevelBuilder& outer, const Graph& graph, const BodyInputs& inputs,
                                         std::vector<bool> host_outputs, LoopSteps* loop = nullptr);

}  // namespace asc
