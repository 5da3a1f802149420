#include <algorithm>
#include <set>

#include "plan/builder.h"
#include "plan/loop_body.h"

namespace asc {
namespace {

void check_operators(const Graph& g, std::map<std::string, std::pair<int, std::string>>& unknown) {
  for (const Node& n : g.nodes()) {
    if (!OpRegistry::instance().find(n.op)) {
      auto& entry = unknown[n.op];
      if (entry.first++ == 0) entry.second = n.name;
    }
    for (const Attribute& a : n.attributes.all())
      if (auto* body = std::get_if<std::shared_ptr<Graph>>(&a.data)) check_operators(**body, unknown);
  }
}

void throw_unsupported(const std::map<std::string, std::pair<int, std::string>>& unknown) {
  std::string list;
  for (const auto& [op, entry] : unknown)
    list += (list.empty() ? "" : ", ") + op + " x" + std::to_string(entry.first) + " (first: '" + entry.second + "')";
  throw UnsupportedError("[compile] operators not supported: " + list +
                         "; replace them in the model or keep onnxruntime for it");
}

void init_values(LevelBuilder& b) {
  b.values.resize(b.graph.value_count());
  b.static_shapes.resize(b.graph.value_count());
  for (size_t i = 0; i < b.values.size(); ++i) {
    const Value& v = b.graph.value(static_cast<ValueId>(i));
    b.values[i].name = v.name;
    b.values[i].type = v.type;
    b.values[i].constant = v.constant;
    b.values[i].root = static_cast<ValueId>(i);
    if (v.constant) {
      b.values[i].type.dtype = v.constant->dtype;
      b.static_shapes[i] = v.constant->shape;
    }
  }
  for (ValueId v : b.graph.inputs()) {
    const TensorType& t = b.values[v].type;
    if (t.dtype == DType::kUndefined)
      throw GraphError("[compile] input '" + b.values[v].name + "' has no element type; declare it in the model");
    if (t.is_static()) {
      Shape s;
      for (const Dim& d : t.dims) s.push_back(d.value);
      b.static_shapes[v] = s;
    }
  }
  b.outputs = b.graph.outputs();
}

// What folding read, and nobody else does, need not stay in memory.
void drop_unread_constants(LevelBuilder& b, const Plan& plan) {
  std::vector<bool> is_read(b.values.size(), false);
  for (const Segment& s : plan.segments)
    for (const PlanNode& n : s.nodes) {
      for (ValueId v : n.node.inputs)
        if (v != kNoValue) is_read[v] = is_read[b.values[v].root] = true;
      for (const Node& part : n.parts)  // a saved file holds them
        for (ValueId v : part.inputs)
          if (v != kNoValue) is_read[v] = true;
    }
  for (ValueId v : plan.inputs) is_read[v] = true;
  for (ValueId v : plan.outputs) is_read[v] = is_read[b.values[v].root] = true;
  for (ValueId v : plan.host_outputs)
    if (v != kNoValue) is_read[v] = true;
  for (size_t v = 0; v < b.values.size(); ++v)
    if (!is_read[v]) b.values[v].constant = nullptr;
}

std::vector<std::string> find_dynamic_reasons(const Plan& plan) {
  std::vector<std::string> reasons;
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    const PlanValue& v = plan.values[plan.inputs[i]];
    if (v.constant) continue;
    if (!v.type.has_rank) reasons.push_back("the rank of input '" + v.name + "' is unknown");
    for (size_t d = 0; d < v.type.dims.size(); ++d)
      if (!v.type.dims[d].is_static())
        reasons.push_back("input '" + v.name + "' dim " + std::to_string(d) + " is unknown" +
                          (v.type.dims[d].symbol.empty() ? "" : " ('" + v.type.dims[d].symbol + "')"));
    if (plan.host_inputs[i]) reasons.push_back("shapes or branches depend on the contents of input '" + v.name + "'");
  }
  for (const Segment& s : plan.segments) {
    for (uint32_t n : s.extent_nodes)
      reasons.push_back("the result shape of " + s.nodes[n].node.op + " '" + s.nodes[n].node.name +
                        "' depends on data");
    for (ValueId v : s.read_backs)
      reasons.push_back("a shape or branch depends on the data of '" + plan.values[v].name + "'");
    if (s.kind != SegmentKind::kTasks)
      reasons.push_back("control flow: " + s.nodes[0].node.op + " '" + s.nodes[0].node.name + "'");
  }
  return reasons;
}

bool has_bytes(const LevelBuilder& b) {
  const auto works_on_bytes = [](const PlanNode& p) {
    return is_conversion(p.node.op) || p.node.op == "MatMulInteger" || p.node.op == "ConvInteger";
  };
  return std::any_of(b.nodes.begin(), b.nodes.end(), works_on_bytes);
}

// Moves conversions together where they cancel, computes on bytes between them, and joins what is left of both.
void quantize(LevelBuilder& b) {
  if (!b.options->fuse) return compute_on_bytes(b);
  move_quantization(b);
  skip_identities(b);
  prune(b);
  compute_on_bytes(b);
  prune(b);
}

void rewrite(LevelBuilder& b) {
  find_trip_limits(b);
  find_step_products(b);
  move_squeezes(b);
  move_transposes(b, false);
  skip_identities(b);
  prune(b);
  if (b.options->fuse && !b.half_products.empty()) {
    keep_bfloat16_weights(b);
    prune(b);
  }
  join_pads(b);
  join_conv_constants(b);
  prune(b);
  find_hard_activations(b);
  find_gelus(b);
  prune(b);
  const bool is_quantized = has_bytes(b);
  if (is_quantized) quantize(b);
  const bool has_images = arrange_channels_last(b);
  if (has_images || (is_quantized && b.options->fuse)) {
    move_transposes(b, true);
    skip_identities(b);
    prune(b);
  }
}

// Whether the graph was rewritten for such options; where it was for others, what its own nodes stand for is compiled
// and rewritten again.
bool take_rewritten(LevelBuilder& b) {
  const bool is_channels_last = b.options->fuse && b.options->channels_last;
  const bool fits = b.graph.is_rewritten && b.graph.is_channels_last == is_channels_last &&
                    (b.options->fuse || b.graph.own_nodes.empty());
  if (!fits) b.graph.own_nodes.clear();
  check_own_nodes(b.graph);
  return fits;
}

}  // namespace

std::shared_ptr<const Plan> compile_level(LevelBuilder& b) {
  init_values(b);
  const bool is_rewritten = take_rewritten(b);
  infer_types_and_fold(b);
  if (!b.graph.own_nodes.empty()) check_sources(b);
  skip_identities(b);
  prune(b);
  if (!is_rewritten) rewrite(b);
  classify(b);
  fuse(b);
  find_unread(b);
  find_roots(b);
  insert_result_copies(b);
  auto plan = std::make_shared<Plan>();
  plan->name = b.graph.name;
  plan->is_rewritten = is_rewritten || b.options->fuse;
  plan->is_channels_last = b.options->fuse && b.options->channels_last;
  plan->inputs = b.graph.inputs();
  for (size_t i = 0; i < b.host_outputs.size(); ++i)
    plan->host_outputs.push_back(b.host_outputs[i] ? b.graph.outputs()[i] : kNoValue);
  plan->outputs = b.outputs;
  plan->segments = cut_segments(b);
  drop_unread_constants(b, *plan);
  plan->values = std::move(b.values);
  for (ValueId v : plan->inputs) plan->host_inputs.push_back(plan->values[v].is_host && !plan->values[v].constant);
  plan->dynamic_reasons = find_dynamic_reasons(*plan);
  return plan;
}

std::shared_ptr<const Plan> compile_body(const LevelBuilder& outer, const Graph& graph, const BodyInputs& inputs,
                                         std::vector<bool> host_outputs, LoopSteps* loop) {
  LevelBuilder b;
  b.loop = loop;
  b.graph = graph;
  b.options = outer.options;
  b.next_number = outer.next_number;
  b.is_body = true;
  b.host_outputs = std::move(host_outputs);
  b.host_outputs.resize(graph.outputs().size());
  const std::vector<ValueId>& formal = b.graph.inputs();
  if (formal.size() != inputs.types.size())
    throw GraphError("[compile] body '" + graph.name + "' takes " + std::to_string(formal.size()) + " inputs, got " +
                     std::to_string(inputs.types.size()));
  for (size_t i = 0; i < formal.size(); ++i) {
    Value& v = b.graph.value(formal[i]);
    if (v.type.dtype != DType::kUndefined && v.type.dtype != inputs.types[i])
      throw GraphError("[compile] input '" + v.name + "' of body '" + graph.name + "' is declared " +
                       name_of(v.type.dtype) + " and receives " + name_of(inputs.types[i]));
    v.type.dtype = inputs.types[i];
    v.constant = inputs.constants[i];
    v.type.has_rank = false;
    v.type.dims.clear();
    if (!inputs.shapes[i]) continue;
    v.type.has_rank = true;
    for (int64_t d : *inputs.shapes[i]) v.type.dims.push_back({d, ""});
  }
  return compile_level(b);
}

std::shared_ptr<const Plan> compile_plan(Graph graph, const CompileOptions& options) {
  graph.validate_and_sort();
  std::map<std::string, std::pair<int, std::string>> unknown;
  check_operators(graph, unknown);
  if (!unknown.empty()) throw_unsupported(unknown);
  uint32_t next_number = 0;
  LevelBuilder b;
  b.graph = std::move(graph);
  b.options = &options;
  b.next_number = &next_number;
  b.host_outputs.resize(b.graph.outputs().size());
  std::shared_ptr<const Plan> plan = compile_level(b);
  std::const_pointer_cast<Plan>(plan)->node_count = next_number;
  return plan;
}

}  // namespace asc
