// Element types, static shapes and constant folding, in one walk: each may need the others (a folded Shape makes the
// next shape static).
#include "plan/builder.h"
#include "plan/loop_body.h"

namespace asc {
namespace {

PlanNode make_plan_node(const LevelBuilder& b, Node n) {
  PlanNode p;
  p.node = std::move(n);
  p.op = OpRegistry::instance().find(p.node.op);
  p.input_types.reserve(p.node.inputs.size());
  for (size_t i = 0; i < p.node.inputs.size(); ++i) {
    const ValueId v = p.node.inputs[i];
    p.input_types.push_back(v == kNoValue ? DType::kUndefined : b.values[v].type.dtype);
    if (v != kNoValue && b.values[v].constant && i < 64) p.constant_inputs |= uint64_t{1} << i;
  }
  return p;
}

// A Cast to the type that a value has already is a view of it.
void drop_empty_cast(PlanNode& p) {
  if ((p.node.op != "Cast" && p.node.op != "CastLike") || p.output_types[0] != p.input_types[0]) return;
  p.op = OpRegistry::instance().find("Identity");
  p.node.op = "Identity";
  p.node.inputs.resize(1);
  p.input_types.resize(1);
  p.constant_inputs &= 1;
}

void check_arity(const PlanNode& p) {
  auto check = [&](const char* what, int got, int low, int high) {
    if (got < low || (high >= 0 && got > high))
      throw GraphError("[compile] " + p.node.op + " '" + p.node.name + "' has " + std::to_string(got) + " " + what +
                       ", expected " + std::to_string(low) + (high < 0 ? " or more" : " to " + std::to_string(high)));
  };
  check("inputs", static_cast<int>(p.node.inputs.size()), p.op->min_inputs, p.op->max_inputs);
  check("outputs", static_cast<int>(p.node.outputs.size()), p.op->min_outputs, p.op->max_outputs);
  for (int i = 0; i < p.op->min_inputs; ++i)
    if (p.node.inputs[i] == kNoValue && p.op->kind != OpKind::kControl)
      throw GraphError("[compile] " + p.node.op + " '" + p.node.name + "' lacks its required input " +
                       std::to_string(i));
}

// Output shapes where every input shape is static and every value that infer_shape reads is constant.
std::optional<std::vector<Shape>> infer_static(const LevelBuilder& b, const PlanNode& p) {
  if (p.op->is_host_call) return std::nullopt;
  const size_t n = p.node.inputs.size();
  std::vector<const Shape*> shapes(n, nullptr);
  std::vector<const HostTensor*> hosts(n, nullptr);
  for (size_t i = 0; i < n; ++i) {
    const ValueId v = p.node.inputs[i];
    if (v == kNoValue) continue;
    if (!b.static_shapes[v]) return std::nullopt;
    shapes[i] = &*b.static_shapes[v];
    hosts[i] = b.values[v].constant.get();
    if (((p.op->host_inputs >> i) & 1u) && !hosts[i]) return std::nullopt;
  }
  std::vector<Shape> out(p.node.outputs.size());
  InferContext ctx(p.node, p.input_types.data(), shapes.data(), hosts.data(), static_cast<int>(n), out.data(),
                   static_cast<int>(out.size()));
  p.op->infer_shape(ctx);
  return out;
}

bool fits_fold_limit(const LevelBuilder& b, const PlanNode& p, const std::vector<Shape>& shapes) {
  size_t bytes = 0;
  for (size_t i = 0; i < shapes.size(); ++i) bytes += shapes[i].num_elements() * size_of(p.output_types[i]);
  return bytes <= b.options->fold_limit_bytes;
}

// True when the node was computed and its outputs became constants.
bool try_fold(LevelBuilder& b, const PlanNode& p) {
  if (p.op->kind == OpKind::kDataDependent || p.op->is_random || !b.options->fold) return false;
  std::vector<const HostTensor*> values;
  std::vector<const Shape*> shapes;
  for (ValueId v : p.node.inputs) {
    values.push_back(v == kNoValue ? nullptr : b.values[v].constant.get());
    shapes.push_back(v == kNoValue ? nullptr : &*b.static_shapes[v]);
    if (v != kNoValue && !values.back() && !p.op->is_shape_only) return false;
  }
  std::vector<HostTensor> results;
  try {
    results = b.options->fold(p, values, shapes);
  } catch (const Error&) {
    return false;  // it may sit in a branch that is never taken; if it runs, the run reports it
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const ValueId v = p.node.outputs[i];
    if (v != kNoValue) b.values[v].constant = std::make_shared<const HostTensor>(std::move(results[i]));
  }
  return true;
}

void set_output(LevelBuilder& b, const PlanNode& p, size_t i, const std::optional<Shape>& shape) {
  const ValueId v = p.node.outputs[i];
  if (v == kNoValue) return;
  PlanValue& value = b.values[v];
  value.type.dtype = p.output_types[i];
  if (!shape) return;
  b.static_shapes[v] = *shape;
  value.type.has_rank = true;
  value.type.dims.clear();
  value.type.dims.reserve(static_cast<size_t>(shape->rank()));
  for (int64_t d : *shape) value.type.dims.push_back({d, {}});
}

BodyInputs describe(const LevelBuilder& b, const PlanNode& p, size_t first, bool keeps_values) {
  BodyInputs in;
  for (size_t i = first; i < p.node.inputs.size(); ++i) {
    const ValueId v = p.node.inputs[i];
    const bool is_capture = keeps_values || i >= p.node.inputs.size() - p.node.attributes.get_int("num_captures", 0);
    in.types.push_back(p.input_types[i]);
    in.constants.push_back(is_capture && v != kNoValue ? b.values[v].constant : nullptr);
    in.shapes.push_back(is_capture && v != kNoValue ? b.static_shapes[v] : std::nullopt);
  }
  return in;
}

void check_same_outputs(const PlanNode& p, const Plan& plan, size_t expected) {
  if (plan.outputs.size() != expected)
    throw GraphError("[compile] " + p.node.op + " '" + p.node.name + "': body '" + plan.name + "' has " +
                     std::to_string(plan.outputs.size()) + " outputs, expected " + std::to_string(expected));
}

// What stands in for a branch that never runs: it takes and gives the same types, and does nothing. With the other
// branch in its place, what branches hold would double with each level of nesting.
Graph make_unused_branch(const Plan& other, const BodyInputs& in) {
  Graph graph;
  graph.name = other.name;
  for (size_t i = 0; i < in.types.size(); ++i) {
    Value v;
    v.name = "input_" + std::to_string(i);
    graph.add_input(graph.add_value(std::move(v)));
  }
  for (size_t i = 0; i < other.outputs.size(); ++i) {
    const DType dtype = other.values[other.outputs[i]].type.dtype;
    graph.add_output(graph.add_constant("output_" + std::to_string(i), HostTensor::allocate(dtype, Shape{0})));
  }
  return graph;
}

void compile_if(LevelBuilder& b, PlanNode& p) {
  const BodyInputs in = describe(b, p, 1, true);
  const HostTensor* condition = b.values[p.node.inputs[0]].constant.get();
  const bool is_decided = condition && condition->dtype == DType::kBool && condition->shape.num_elements() == 1;
  std::vector<std::shared_ptr<const Plan>> branches(2);
  for (const size_t i : {0, 1})
    if (!is_decided || *condition->as<bool>() == (i == 0))
      branches[i] = compile_body(b, *p.node.attributes.get_graph(i == 0 ? "then_branch" : "else_branch"), in, {});
  // A branch that never runs may hold shapes that fit nothing.
  for (const size_t i : {0, 1})
    if (!branches[i]) branches[i] = compile_body(b, make_unused_branch(*branches[1 - i], in), in, {});
  b.bodies[p.number] = std::move(branches);
  const auto& [then_plan, else_plan] = std::tie(b.bodies[p.number][0], b.bodies[p.number][1]);
  check_same_outputs(p, *then_plan, p.node.outputs.size());
  check_same_outputs(p, *else_plan, p.node.outputs.size());
  for (size_t i = 0; i < p.node.outputs.size(); ++i) {
    const DType t = then_plan->values[then_plan->outputs[i]].type.dtype;
    const DType e = else_plan->values[else_plan->outputs[i]].type.dtype;
    if (t != e)
      throw GraphError("[compile] If '" + p.node.name + "' output " + std::to_string(i) + ": then gives " + name_of(t) +
                       ", else gives " + name_of(e));
    p.output_types.push_back(t);
  }
}

LoopSteps describe_steps(const LevelBuilder& b, const PlanNode& p, size_t carried) {
  LoopSteps steps;
  steps.carried = carried;
  for (ValueId v : p.node.inputs)
    steps.starts_as_number.push_back(v != kNoValue && b.static_shapes[v] && b.static_shapes[v]->rank() == 0);
  const HostTensor* trips = p.node.inputs[0] == kNoValue ? nullptr : b.values[p.node.inputs[0]].constant.get();
  if (trips && trips->dtype == DType::kInt64 && trips->shape.num_elements() == 1)
    steps.trips = std::max<int64_t>(0, *trips->as<int64_t>());
  return steps;
}

// Body inputs: iteration, condition, carried…, captures…; outputs: condition, carried…, scanned….
void compile_loop(LevelBuilder& b, PlanNode& p) {
  BodyInputs in = describe(b, p, 0, false);
  in.types[0] = DType::kInt64;
  in.types[1] = DType::kBool;
  in.shapes[0] = in.shapes[1] = Shape{};
  in.constants[0] = in.constants[1] = nullptr;
  const size_t captures = static_cast<size_t>(p.node.attributes.get_int("num_captures", 0));
  if (p.node.inputs.size() < 2 + captures)
    throw GraphError("[compile] Loop '" + p.node.name + "' has too few inputs for its captures");
  const size_t carried = p.node.inputs.size() - 2 - captures;
  std::vector<bool> on_host(1 + carried, false);
  on_host[0] = true;
  std::shared_ptr<const Plan> body;
  LoopSteps steps;
  for (bool changed = true; changed;) {  // a carried value that the body reads on the host must leave it on the host
    steps = describe_steps(b, p, carried);
    body = compile_body(b, *p.node.attributes.get_graph("body"), in, on_host, &steps);
    changed = false;
    for (size_t i = 0; i < carried; ++i)
      if (body->host_inputs[2 + i] && !on_host[1 + i]) on_host[1 + i] = changed = true;
  }
  check_same_outputs(p, *body, std::max(body->outputs.size(), 1 + carried));
  if (body->outputs.size() != 1 + p.node.outputs.size())
    throw GraphError("[compile] Loop '" + p.node.name + "' has " + std::to_string(p.node.outputs.size()) +
                     " outputs, its body has " + std::to_string(body->outputs.size()) + "; expected one more");
  for (size_t i = 0; i < p.node.outputs.size(); ++i)
    p.output_types.push_back(body->values[body->outputs[1 + i]].type.dtype);
  for (size_t i = 0; i < carried; ++i)
    if (p.output_types[i] != in.types[2 + i])
      throw GraphError("[compile] Loop '" + p.node.name + "' carries " + name_of(in.types[2 + i]) + " into and " +
                       name_of(p.output_types[i]) + " out of its body at position " + std::to_string(i));
  b.bodies[p.number].push_back(body);
  add_trip_limits(b, p, steps);
  add_step_products(b, p, steps);
}

void infer_control(LevelBuilder& b, PlanNode& p) {
  if (p.node.op == "If")
    compile_if(b, p);
  else if (p.node.op == "Loop")
    compile_loop(b, p);
  else
    throw UnsupportedError("[compile] operators not supported: " + p.node.op + " x1 (first: '" + p.node.name +
                           "'); unroll it in the model or keep onnxruntime for it");
}

}  // namespace

PlanNode describe_node(const LevelBuilder& b, Node n) {
  PlanNode p = make_plan_node(b, std::move(n));
  check_arity(p);
  if (p.op->kind == OpKind::kControl) return p;
  p.output_types.reserve(p.node.outputs.size());
  for (size_t i = 0; i < p.node.outputs.size(); ++i)
    p.output_types.push_back(p.op->infer_dtype(p.node, p.input_types, static_cast<int>(i)));
  return p;
}

void add_node(LevelBuilder& b, Node n) {
  PlanNode p = describe_node(b, std::move(n));
  p.number = (*b.next_number)++;
  std::optional<std::vector<Shape>> shapes;
  if (p.op->kind == OpKind::kControl) {
    infer_control(b, p);
  } else {
    drop_empty_cast(p);
    shapes = infer_static(b, p);
  }
  const bool has_shapes = shapes && p.op->kind != OpKind::kDataDependent;
  for (size_t i = 0; i < p.node.outputs.size(); ++i)
    set_output(b, p, i, has_shapes ? std::optional<Shape>((*shapes)[i]) : std::nullopt);
  if (p.node.op == "DynamicQuantizeLinear" && !has_shapes)  // scale and zero point, of any input
    for (size_t i = 1; i < p.node.outputs.size(); ++i) set_output(b, p, i, Shape{});
  if (has_shapes && fits_fold_limit(b, p, *shapes) && try_fold(b, p)) {
    if (p.node.op == "DequantizeLinear") b.dequantized.emplace(p.node.outputs[0], std::move(p.node));
    return;
  }
  b.nodes.push_back(std::move(p));
}

}  // namespace asc
