#include "ops/extension.h"

#include <array>
#include <cstring>

#include "ops/infer.h"
#include "ops/type_rules.h"

namespace asc {
namespace {

static_assert(kMaxRank <= ASC_MAX_RANK, "every shape of ours has a form there");

constexpr size_t kMaxExtensions = 4096;

// Entries are written once, before anybody knows their number.
std::array<const asc_operator*, kMaxExtensions>& table() {
  static std::array<const asc_operator*, kMaxExtensions> entries{};
  return entries;
}

const Node& node_of(const asc_context* context) { return *static_cast<const Node*>(context->node); }

// Called from C: nothing may be thrown.
int64_t attribute_int(const asc_context* context, const char* name, int64_t fallback) try {
  return node_of(context).attributes.get_int(name, fallback);
} catch (const Error&) {
  return fallback;
}

double attribute_float(const asc_context* context, const char* name, double fallback) try {
  return node_of(context).attributes.get_float(name, fallback);
} catch (const Error&) {
  return fallback;
}

int32_t attribute_ints(const asc_context* context, const char* name, int64_t* values, int32_t capacity) try {
  const std::vector<int64_t>& found = node_of(context).attributes.get_ints(name);
  const auto count = static_cast<int32_t>(found.size());
  for (int32_t i = 0; i < count && i < capacity; ++i) values[i] = found[static_cast<size_t>(i)];
  return count;
} catch (const Error&) {
  return 0;
}

const char* attribute_text(const asc_context* context, const char* name, const char* fallback) try {
  const std::string_view found = node_of(context).attributes.get_string(name, "");
  return found.empty() ? fallback : found.data();  // a whole string, hence with a zero at its end
} catch (const Error&) {
  return fallback;
}

int note_failure(asc_context* context, const char* why) {
  std::strncpy(context->error, why ? why : "", ASC_ERROR_BYTES - 1);
  return 1;
}

void infer_extension(InferContext& ctx) {
  const asc_operator& op = extension_of(ctx.node());
  ExtensionCall call(ctx.node(), "infer_shape");
  asc_tensor inputs[ASC_MAX_OPERANDS], outputs[ASC_MAX_OPERANDS];
  int32_t types[ASC_MAX_OPERANDS];
  for (int i = 0; i < ctx.input_count(); ++i) {
    inputs[i] = ctx.has_input(i) ? describe(ctx.dtype(i), ctx.input(i)) : asc_tensor{};
    types[i] = inputs[i].type;
  }
  for (int i = 0; i < op.outputs; ++i) {
    outputs[i] = {};
    outputs[i].type = op.infer_type ? op.infer_type(types, ctx.input_count(), i) : types[0];
    outputs[i].rank = -1;
  }
  call.check([&] { return op.infer_shape(call.context(), inputs, ctx.input_count(), outputs); });
  for (int i = 0; i < op.outputs; ++i) {
    const asc_tensor& t = outputs[i];
    if (t.rank < 0 || t.rank > kMaxRank)
      call.fail("its infer_shape gave output " + std::to_string(i) + " the rank " + std::to_string(t.rank));
    Shape shape;
    int64_t count = 1;
    for (int d = 0; d < t.rank; ++d) {
      if (t.shape[d] < 0 || t.shape[d] > kMaxElements || (t.shape[d] > 0 && count > kMaxElements / t.shape[d]))
        call.fail("its infer_shape gave output " + std::to_string(i) + " the dimension " + std::to_string(t.shape[d]));
      if (t.shape[d] > 0) count *= t.shape[d];
      shape.push_back(t.shape[d]);
    }
    ctx.set_output(i, shape);
  }
}

DType extension_type(const Node& node, const std::vector<DType>& inputs, int output) {
  const asc_operator& op = extension_of(node);
  const auto count = static_cast<int>(inputs.size());
  if (count < op.min_inputs || count > op.max_inputs || static_cast<int>(node.outputs.size()) != op.outputs)
    fail_type(node, std::string(op.name) + " has " + std::to_string(count) + " inputs and " +
                        std::to_string(node.outputs.size()) + " outputs; expected " + std::to_string(op.min_inputs) +
                        " to " + std::to_string(op.max_inputs) + " and " + std::to_string(op.outputs));
  if (!op.infer_type) return inputs[0];
  int32_t types[ASC_MAX_OPERANDS];
  for (int i = 0; i < count; ++i) types[i] = onnx_number(inputs[i]);
  int32_t type = 0;
  ExtensionCall call(node, "infer_type");
  call.check([&] {
    type = op.infer_type(types, count, output);
    return 0;
  });
  if (type == 0) call.fail("it refuses these element types");
  return dtype_from_onnx(node, type);
}

[[noreturn]] void refuse(const asc_operator* op, const std::string& what) {
  const bool has_name = op && op->version == ASC_OPERATOR_VERSION && op->size == sizeof(asc_operator) && op->name;
  throw PlanError("[op] operator " + (has_name ? "'" + std::string(op->name) + "'" : std::string("in a capsule")) +
                  ": " + what + "; build the package against ascendsched.get_include()");
}

}  // namespace

int64_t add_extension(const asc_operator* op) {
  if (!op) refuse(op, "the pointer is null");
  if (op->version != ASC_OPERATOR_VERSION || op->size != sizeof(asc_operator))
    refuse(op, "version " + std::to_string(op->version) + " of " + std::to_string(op->size) + " bytes, expected " +
                   std::to_string(ASC_OPERATOR_VERSION) + " of " + std::to_string(sizeof(asc_operator)));
  if (!op->name || !std::strstr(op->name, "::")) refuse(op, "its name has no domain; expected 'domain::name'");
  if (!op->infer_shape) refuse(op, "infer_shape is missing");
  if (!op->launch) refuse(op, "launch is missing");
  if (op->min_inputs < 1 || op->max_inputs < op->min_inputs || op->outputs < 1 ||
      op->max_inputs > ASC_MAX_OPERANDS - op->outputs)
    refuse(op, std::to_string(op->min_inputs) + " to " + std::to_string(op->max_inputs) + " inputs and " +
                   std::to_string(op->outputs) + " outputs, expected 1 or more of each and at most " +
                   std::to_string(ASC_MAX_OPERANDS) + " together");
  auto& entries = table();
  for (size_t i = 0; i < kMaxExtensions; ++i) {
    if (entries[i] && entries[i] != op) continue;
    entries[i] = op;
    return static_cast<int64_t>(i);
  }
  refuse(op, "there are " + std::to_string(kMaxExtensions) + " operators already");
}

const asc_operator& extension_of(const Node& node) {
  const int64_t number = node.attributes.get_int("extension_number", -1);
  const std::string name(node.attributes.get_string("extension", ""));
  const bool is_inside = number >= 0 && static_cast<size_t>(number) < kMaxExtensions;
  const asc_operator* op = is_inside ? table()[static_cast<size_t>(number)] : nullptr;
  if (!op || name != op->name)
    throw GraphError("[op] '" + node.name + "': operator '" + name +
                     "' is not loaded in this process; compile the model again");
  return *op;
}

asc_context make_context(const Node& node) {
  asc_context context{};
  context.node = &node;
  context.attribute_int = attribute_int;
  context.attribute_float = attribute_float;
  context.fail = note_failure;
  context.attribute_ints = attribute_ints;
  context.attribute_text = attribute_text;
  return context;
}

ExtensionCall::ExtensionCall(const Node& node, const char* where)
    : context_(make_context(node)), node_(node), where_(where) {}

void ExtensionCall::fail(const std::string& what) const {
  throw GraphError("[" + std::string(where_) + "] " + std::string(node_.attributes.get_string("extension", "")) + " '" +
                   node_.name + "': " + what + "; check its inputs, or ask the package's author");
}

void ExtensionCall::check(const std::function<int()>& function) {
  int status = 0;
  try {
    status = function();
  } catch (...) {  // a C++ function behind the C interface
    fail("it threw an exception, which it must not");
  }
  if (status != 0) fail(context_.error[0] ? context_.error : "it failed with " + std::to_string(status));
}

int32_t onnx_number(DType dtype) {
  constexpr int32_t kNumbers[kDTypeCount] = {0,          ASC_FLOAT32, ASC_FLOAT64, ASC_FLOAT16, ASC_BFLOAT16,
                                             ASC_INT8,   ASC_UINT8,   ASC_INT16,   ASC_UINT16,  ASC_INT32,
                                             ASC_UINT32, ASC_INT64,   ASC_UINT64,  ASC_BOOL};
  return kNumbers[static_cast<int>(dtype)];
}

asc_tensor describe(DType dtype, const Shape& shape) {
  asc_tensor t{};
  t.type = onnx_number(dtype);
  t.rank = shape.rank();
  for (int d = 0; d < shape.rank(); ++d) t.shape[d] = shape[d];
  return t;
}

void register_extension_ops(OpRegistry& r) {
  r.add(OpDef("Extension", 1, ASC_MAX_OPERANDS, infer_extension, extension_type).outputs(1, ASC_MAX_OPERANDS));
}

}  // namespace asc
