// Half-precision arithmetic in float32. A run of operators on float16 or bfloat16 is computed in float32 and rounded
// where it leaves the run: fewer conversions, and at least the precision of runtimes that do the same. Values that the
// model itself casts are rounded as it says.
#include <map>
#include <set>

#include "ops/half.h"
#include "plan/builder.h"

namespace asc {
namespace {

constexpr int64_t kOnnxFloat = 1;  // TensorProto.FLOAT

// Operators that move elements or read none: they follow their inputs, and force nothing.
bool is_movement(const std::string& op) {
  static const std::set<std::string> kNames = {
      "Compress",       "Concat",    "DepthToSpace", "Dropout",   "Expand",       "Flatten",         "Gather",
      "GatherElements", "GatherND",  "Identity",     "Pad",       "Reshape",      "ReverseSequence", "ScatterElements",
      "ScatterND",      "Shape",     "Size",         "Slice",     "SpaceToDepth", "Split",           "Squeeze",
      "Tile",           "Transpose", "Trilu",        "Unsqueeze", "Where"};
  return kNames.count(op) != 0;
}

class Widener {
 public:
  explicit Widener(LevelBuilder& b) : b_(b) {}

  void add(Node n) {
    const bool is_complete = n.inputs.size() == 1 && n.inputs[0] != kNoValue && n.outputs.size() == 1;
    if (n.op == "Identity" && is_complete) {  // a name for what is there in both forms: converts nothing
      const ValueId from = n.inputs[0], to = n.outputs[0];
      add_node(b_, std::move(n));
      if (wide_of(from) != kNoValue) set_wide(to, wide_of(from));
      return;
    }
    if (!can_widen(n)) {
      if (n.op == "Cast") note_constant(n);
      if (n.attributes.get_int(kReadsBFloat16, 0) != 0 && n.inputs.size() > 1 && !n.outputs.empty())
        note_product(n.inputs[1], n.outputs[0]);
      add_node(b_, std::move(n));
      return;
    }
    const PlanNode original = describe_node(b_, n);
    Node wide = n;
    for (ValueId& v : wide.inputs)
      if (is_half(v)) v = widen(v);
    std::vector<size_t> narrowed;
    for (size_t i = 0; i < n.outputs.size() && n.op != "Cast"; ++i) {
      if (n.outputs[i] == kNoValue || !kHalfFloats.contains(original.output_types[i])) continue;
      wide.outputs[i] = new_value(b_.values[n.outputs[i]].name + "_float32");
      narrowed.push_back(i);
    }
    const std::vector<ValueId> outputs = wide.outputs;
    if (bfloat16_product_op(n.op) && is_half(n.inputs[0])) note_product(wide.inputs[1], wide.outputs[0]);
    add_node(b_, std::move(wide));
    for (size_t i : narrowed) {
      add_cast(outputs[i], n.outputs[i], original.output_types[i]);
      set_wide(n.outputs[i], outputs[i]);
    }
  }

 private:
  bool is_half(ValueId v) const { return v != kNoValue && kHalfFloats.contains(b_.values[v].type.dtype); }
  ValueId wide_of(ValueId v) const { return static_cast<size_t>(v) < wide_.size() ? wide_[v] : kNoValue; }
  void set_wide(ValueId v, ValueId wide) {
    if (wide_.size() <= static_cast<size_t>(v)) wide_.resize(v + 1, kNoValue);
    wide_[v] = wide;
  }

  bool can_widen(const Node& n) const {
    bool any = false, all_wide = true;
    for (ValueId v : n.inputs) {
      if (!is_half(v)) continue;
      any = true;
      all_wide = all_wide && wide_of(v) != kNoValue;
    }
    if (!any || n.op == "CastLike" || n.op == "BitCast") return false;
    if (OpRegistry::instance().find(n.op)->kind == OpKind::kControl) return false;
    return all_wide || (!is_movement(n.op) && n.op != "Cast");
  }

  void note_constant(const Node& cast) {
    if (cast.inputs.size() != 1 || cast.inputs[0] == kNoValue || cast.outputs.size() != 1) return;
    const HostTensor* c = b_.values[cast.inputs[0]].constant.get();
    if (c && c->dtype == DType::kBFloat16 && cast.attributes.get_int("to", 0) == kOnnxFloat)
      constants_.emplace(cast.outputs[0], cast);
  }

  // A product of bfloat16, with its weights in float32.
  void note_product(ValueId weights, ValueId result) {
    if (const auto cast = constants_.find(weights); cast != constants_.end())
      b_.half_products.emplace(result, cast->second);
  }

  ValueId widen(ValueId v) {
    if (wide_of(v) == kNoValue) {
      const ValueId wide = new_value(b_.values[v].name + "_float32");
      add_cast(v, wide, DType::kFloat32);
      set_wide(v, wide);
    }
    return wide_of(v);
  }

  ValueId new_value(std::string name) {
    PlanValue value;
    value.name = std::move(name);
    value.root = static_cast<ValueId>(b_.values.size());
    b_.values.push_back(std::move(value));
    b_.static_shapes.emplace_back();
    return b_.values.back().root;
  }

  void add_cast(ValueId from, ValueId to, DType type) {
    constexpr int64_t kOnnxFloat16 = 10, kOnnxBFloat16 = 16;
    Node n;
    n.op = "Cast";
    n.name = "cast_to_" + b_.values[to].name;
    n.inputs = {from};
    n.outputs = {to};
    n.attributes.set("to", type == DType::kFloat32   ? kOnnxFloat
                           : type == DType::kFloat16 ? kOnnxFloat16
                                                     : kOnnxBFloat16);
    note_constant(n);
    add_node(b_, std::move(n));
  }

  LevelBuilder& b_;
  std::map<ValueId, Node> constants_;  // float32 forms of bfloat16 constants: the Cast that gives them
  std::vector<ValueId> wide_;          // by value: its float32 form, or kNoValue
};

}  // namespace

void infer_types_and_fold(LevelBuilder& b) {
  Widener widener(b);
  std::vector<Node>& nodes = b.graph.nodes();
  b.nodes.reserve(nodes.size());
  size_t i = 0;
  for (OwnNode& own : b.graph.own_nodes) {
    for (; i < own.first; ++i) widener.add(std::move(nodes[i]));
    add_own_node(b, std::move(own));
    i = own.first + own.count;
  }
  for (; i < nodes.size(); ++i) widener.add(std::move(nodes[i]));
}

}  // namespace asc
