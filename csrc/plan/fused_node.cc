#include "plan/fused_node.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "plan/byte_values.h"

namespace asc {
namespace {

// A body may outlive the model, and with it the file that holds the constant.
std::shared_ptr<const HostTensor> copy_of(const HostTensor& t) {
  HostTensor copy = HostTensor::allocate(t.dtype, t.shape);
  if (t.bytes()) std::memcpy(copy.mutable_data(), t.data(), t.bytes());
  return std::make_shared<const HostTensor>(std::move(copy));
}

}  // namespace

PlanNode FusedNodes::merge(const std::vector<int>& group) {
  PlanNode fused;
  fused.number = b_.nodes[group.back()].number;
  fused.node.outputs = b_.nodes[group.back()].node.outputs;
  fused.output_types = {b_.values[fused.node.outputs[0]].type.dtype};
  const std::shared_ptr<FusedBody> body = find_body(group, fused);
  fused.op = &fused_op(body->host_count);
  fused.node.op = fused.op->name;
  fused.node.attributes.set("body", std::shared_ptr<Graph>(body));
  for (int i : group) {
    fused.node.name += (fused.node.name.empty() ? "" : " + ") + b_.nodes[i].node.name;
    std::vector<Node>& parts = b_.nodes[i].parts;
    if (parts.empty())
      parts.push_back(std::move(b_.nodes[i].node));
    else
      fused.own.push_back({static_cast<uint32_t>(fused.parts.size()), static_cast<uint32_t>(parts.size()),
                           std::move(b_.nodes[i].node)});
    fused.parts.insert(fused.parts.end(), std::make_move_iterator(parts.begin()), std::make_move_iterator(parts.end()));
  }
  return fused;
}

// The body of the group; sets the node's inputs, those first that are read on the host.
std::shared_ptr<FusedBody> FusedNodes::find_body(const std::vector<int>& group, PlanNode& fused) {
  auto body = std::make_shared<FusedBody>();
  std::vector<PlanNode> steps;
  for (int n : group) steps.push_back(simplified(b_.nodes[n]));
  std::vector<ValueId> ids(b_.values.size(), kNoValue);
  const auto is_inside = [&](ValueId v) {
    return uses_.producer(v) >= 0 && std::binary_search(group.begin(), group.end(), uses_.producer(v));
  };
  for (bool on_host : {true, false}) {
    for (const PlanNode& step : steps)
      for (size_t i = 0; i < step.node.inputs.size(); ++i) {
        const ValueId v = step.node.inputs[i];
        if (v == kNoValue || ids[v] != kNoValue || Uses::is_read_on_host(step, i) != on_host || is_inside(v)) continue;
        if (on_host && b_.values[v].constant) continue;
        ids[v] = add_typed(*body, v);
        body->add_input(ids[v]);
        if (b_.values[v].constant) fused.constant_inputs |= uint64_t{1} << fused.node.inputs.size();
        fused.node.inputs.push_back(v);
        fused.input_types.push_back(b_.values[v].type.dtype);
      }
    if (on_host) body->host_count = body->input_count();
  }
  for (int n : group) ids[b_.nodes[n].node.outputs[0]] = add_typed(*body, b_.nodes[n].node.outputs[0]);
  body->add_output(ids[b_.nodes[group.back()].node.outputs[0]]);
  for (const PlanNode& step : steps) body->add_node(make_step(step, ids, *body));
  for (const PlanNode& step : steps) body->ops.push_back(step.op);
  return share(std::move(body));
}

ValueId FusedNodes::add_typed(Graph& body, ValueId like) const {
  Value value;
  value.type.dtype = b_.values[like].type.dtype;
  return body.add_value(std::move(value));
}

// The value of a constant that is one number; 0 for everything else.
float FusedNodes::constant_number(ValueId v) const {
  const HostTensor* c = v == kNoValue ? nullptr : b_.values[v].constant.get();
  return c && c->dtype == DType::kFloat32 && c->shape.rank() == 0 ? *c->as<float>() : 0.0f;
}

// The simplest spelling: kernels then need not know what a constant holds.
PlanNode FusedNodes::simplified(const PlanNode& p) const {
  PlanNode s;
  s.node = p.node;
  s.op = p.op;
  if (p.node.op == "Pow" && constant_number(p.node.inputs[1]) == 2.0f) {
    s.op = OpRegistry::instance().find("Mul");
    s.node.inputs[1] = s.node.inputs[0];
  } else if (p.node.op == "Div" && constant_number(p.node.inputs[0]) == 1.0f) {
    s.op = OpRegistry::instance().find("Reciprocal");
    s.node.inputs.erase(s.node.inputs.begin());
  } else if (p.node.op == "Clip") {
    note_number(&s.node, 1, "low");
    note_number(&s.node, 2, "high");
  } else if (p.node.op == "Add" || p.node.op == "Mul") {
    for (size_t i : {0, 1}) note_number(&s.node, i, "number");
  }
  s.node.op = s.op->name;
  return s;
}

// A constant number as an attribute beside the input: known when the device makes a tiling.
void FusedNodes::note_number(Node* n, size_t input, const char* name) const {
  const HostTensor* c = constant_of(b_, input_of(*n, input));
  if (c && c->dtype == DType::kFloat32 && c->shape.num_elements() == 1)
    n->attributes.set(name, static_cast<double>(*c->as<float>()));
}

Node FusedNodes::make_step(const PlanNode& p, const std::vector<ValueId>& ids, Graph& body) const {
  Node step = p.node;
  step.name.clear();
  step.outputs[0] = ids[p.node.outputs[0]];
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    if (p.node.inputs[i] == kNoValue) continue;
    const auto& known = b_.values[p.node.inputs[i]].constant;
    if (!Uses::is_read_on_host(p, i) || !known) {
      step.inputs[i] = ids[p.node.inputs[i]];
      continue;
    }
    Value constant;
    constant.constant = copy_of(*known);
    step.inputs[i] = body.add_value(std::move(constant));
  }
  return step;
}

// An equal body made before, so that nodes of the same structure share it.
std::shared_ptr<FusedBody> FusedNodes::share(std::shared_ptr<FusedBody> made) {
  std::string key;
  for (const Node& step : made->nodes()) key += step.op + " ";
  auto [it, end] = bodies_.equal_range(key);
  for (; it != end; ++it)
    if (it->second->same_structure(*made)) return it->second;
  bodies_.emplace(std::move(key), made);
  return made;
}

}  // namespace asc
