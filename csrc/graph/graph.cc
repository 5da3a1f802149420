// Building a graph, and the text of its types.
#include "graph/graph.h"

namespace asc {

bool TensorType::is_static() const {
  if (!has_rank) return false;
  for (const Dim& d : dims)
    if (!d.is_static()) return false;
  return true;
}

std::string TensorType::text() const {
  std::string s = name_of(dtype);
  if (!has_rank) return s + "[...]";
  s += "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    const Dim& d = dims[i];
    if (i) s += ", ";
    s += d.is_static() ? std::to_string(d.value) : d.symbol.empty() ? "?" : d.symbol;
  }
  return s + "]";
}

void Graph::reserve(size_t values, size_t nodes) {
  values_.reserve(values);
  nodes_.reserve(nodes);
}

ValueId Graph::add_value(Value v) {
  values_.push_back(std::move(v));
  return static_cast<ValueId>(values_.size() - 1);
}

ValueId Graph::add_constant(std::string name, HostTensor t) {
  Value v;
  v.name = std::move(name);
  v.type.dtype = t.dtype;
  v.type.has_rank = true;
  for (int64_t d : t.shape) v.type.dims.push_back(Dim{d, {}});
  v.constant = std::make_shared<const HostTensor>(std::move(t));
  return add_value(std::move(v));
}

int Graph::add_node(Node n) {
  nodes_.push_back(std::move(n));
  return static_cast<int>(nodes_.size() - 1);
}

bool Graph::same_structure(const Graph& o) const {
  if (nodes_.size() != o.nodes_.size() || values_.size() != o.values_.size() || inputs_ != o.inputs_ ||
      outputs_ != o.outputs_)
    return false;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node &a = nodes_[i], &b = o.nodes_[i];
    if (a.op != b.op || a.inputs != b.inputs || a.outputs != b.outputs || !a.attributes.same_value(b.attributes))
      return false;
  }
  for (size_t i = 0; i < values_.size(); ++i) {
    const Value &a = values_[i], &b = o.values_[i];
    if (a.type.dtype != b.type.dtype || !a.constant != !b.constant) return false;
    if (a.constant && !a.constant->same_value(*b.constant)) return false;
  }
  return true;
}

}  // namespace asc
