// The model graph as front ends build it: values, nodes, bodies. Plain data; `plan/` compiles it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/tensor.h"

namespace asc {

class Graph;

using ValueId = int32_t;
constexpr ValueId kNoValue = -1;  // an optional input or output that is absent

// One attribute of a node. Floats keep double precision; a body is an owned Graph.
struct Attribute {
  using Data = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                            std::vector<std::string>, HostTensor, std::shared_ptr<Graph>>;
  std::string name;
  Data data;
};

// The attributes of one node. Typed getters throw GraphError when the stored type differs.
class Attributes {
 public:
  void set(std::string name, Attribute::Data data);
  bool has(std::string_view name) const { return find(name) != nullptr; }
  int64_t get_int(std::string_view name, int64_t fallback) const;
  double get_float(std::string_view name, double fallback) const;
  std::string_view get_string(std::string_view name, std::string_view fallback) const;
  // Empty when absent.
  const std::vector<int64_t>& get_ints(std::string_view name) const;
  const std::vector<double>& get_floats(std::string_view name) const;
  const std::vector<std::string>& get_strings(std::string_view name) const;
  const HostTensor* get_tensor(std::string_view name) const;
  const std::shared_ptr<Graph>& get_graph(std::string_view name) const;  // throws when absent

  const std::vector<Attribute>& all() const { return list_; }  // sorted by name
  std::string text() const;                                    // stable, for Plan::text()
  bool same_value(const Attributes& o) const;                  // bodies: Graph::same_structure

 private:
  const Attribute* find(std::string_view name) const;
  std::vector<Attribute> list_;
};

// A dimension of a declared type: a number, a symbol, or unknown (value -1 and no symbol).
struct Dim {
  int64_t value = -1;
  std::string symbol;
  bool is_static() const { return value >= 0; }
};

struct TensorType {
  DType dtype = DType::kUndefined;
  bool has_rank = false;
  std::vector<Dim> dims;
  bool is_static() const;
  std::string text() const;  // "float32[batch, 3, ?]"
};

struct Value {
  std::string name;
  TensorType type;
  std::shared_ptr<const HostTensor> constant;  // set for initializers
};

struct Node {
  std::string name;  // unique inside the graph; used in errors, traces and explain()
  std::string op;    // ONNX operator name, newest semantics; "domain::Op" outside the default domain
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Attributes attributes;
};

// Of a compiled plan as a graph: the plan computes `count` nodes from `first` on as one, whose operator models cannot
// name: front ends have no way to add one.
struct OwnNode {
  uint32_t first = 0, count = 0;
  Node node;
};

// A body (If, Loop, Scan) is a closed Graph: outer values that it reads are appended to its inputs, and to the
// inputs of the node that holds it (`capture`), in the same order.
class Graph {
 public:
  std::string name;
  // A compiled plan as a graph: what compilation moves or replaces was moved and replaced, for a device that wants
  // channels last or for one that does not.
  bool is_rewritten = false, is_channels_last = false;
  std::vector<OwnNode> own_nodes;  // ascending, without overlap

  void reserve(size_t values, size_t nodes);
  ValueId add_value(Value v);
  ValueId add_constant(std::string name, HostTensor t);
  void add_input(ValueId v) { inputs_.push_back(v); }
  void add_output(ValueId v) { outputs_.push_back(v); }
  int add_node(Node n);

  const Value& value(ValueId v) const { return values_[v]; }
  Value& value(ValueId v) { return values_[v]; }
  size_t value_count() const { return values_.size(); }
  const std::vector<Node>& nodes() const { return nodes_; }
  std::vector<Node>& nodes() { return nodes_; }
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }

  // Whether both compute the same, value by value and node by node: names and declared dimensions do not count.
  bool same_structure(const Graph& o) const;

  // Checks ids, single assignment, that every value has a producer, and that no cycle exists; orders the nodes
  // topologically (stable). Throws GraphError with the node or value by name.
  void validate_and_sort();

 private:
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<ValueId> inputs_, outputs_;
};

}  // namespace asc
