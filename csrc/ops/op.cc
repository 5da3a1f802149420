// The operator registry, and what the rules of all families share.
#include "ops/op.h"

#include <algorithm>

#include "ops/infer.h"

namespace asc {
namespace {

std::string where(const ShapeContext& ctx) { return "[infer_shape] " + ctx.node().op + " '" + ctx.node_name() + "': "; }

}  // namespace

const OpRegistry& OpRegistry::instance() {
  static const OpRegistry kRegistry = [] {
    OpRegistry r;
    register_elementwise_ops(r);
    register_matmul_ops(r);
    register_movement_ops(r);
    register_reduce_ops(r);
    register_nn_ops(r);
    register_image_ops(r);
    register_signal_ops(r);
    register_quantize_ops(r);
    register_generate_ops(r);
    register_random_ops(r);
    register_control_ops(r);
    register_host_call_ops(r);
    register_extension_ops(r);
    register_tree_ops(r);
    return r;
  }();
  return kRegistry;
}

const Op* OpRegistry::find(std::string_view name) const {
  const auto at =
      std::lower_bound(ops_.begin(), ops_.end(), name, [](const Op& op, std::string_view n) { return op.name < n; });
  return at != ops_.end() && at->name == name ? &*at : nullptr;
}

std::vector<std::string> OpRegistry::names() const {
  std::vector<std::string> names;
  for (const Op& op : ops_) names.push_back(op.name);
  return names;
}

void OpRegistry::add(Op op) {
  const auto at =
      std::lower_bound(ops_.begin(), ops_.end(), op.name, [](const Op& o, const std::string& n) { return o.name < n; });
  if (at != ops_.end() && at->name == op.name)
    throw GraphError("[ops] operator '" + op.name + "' is registered twice; choose another name");
  ops_.insert(at, std::move(op));
}

const HostTensor& ShapeContext::host(int i) const {
  host_reads_ |= uint64_t{1} << (i < 63 ? i : 63);
  if (!has_host(i))
    fail_shape(*this,
               message("the value of input ", i, " is needed to determine shapes, but is not known on the host"));
  return *hosts_[i];
}

void InferContext::fail(const std::string& what) const { fail_shape(*this, what); }

void fail_shape(const ShapeContext& ctx, const std::string& what) { throw GraphError(where(ctx) + what); }

void fail_unsupported(const ShapeContext& ctx, const std::string& what) { throw UnsupportedError(where(ctx) + what); }

int64_t normalize_axis(int64_t axis, int rank, const ShapeContext& ctx) {
  if (axis < -rank || axis >= rank)
    fail_shape(ctx, message("axis ", axis, " is out of range for rank ", rank, "; expected ", -rank, " to ", rank - 1));
  return axis < 0 ? axis + rank : axis;
}

Shape broadcast_shapes(const Shape& a, const Shape& b, const ShapeContext& ctx) {
  if (a == b) return a;
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  const int offset = longer.rank() - shorter.rank();
  Shape out = longer;
  for (int i = 0; i < shorter.rank(); ++i) {
    const int64_t d = shorter[i];
    int64_t& o = out[offset + i];
    if (d == 1 || d == o) continue;
    if (o != 1)
      fail_shape(ctx, message("shapes ", a, " and ", b, " do not broadcast; aligned dimensions must be equal or 1"));
    o = d;
  }
  check_size(ctx, out);
  return out;
}

void check_broadcasts_to(const ShapeContext& ctx, const Shape& s, const Shape& target, const char* what) {
  const int offset = target.rank() - s.rank();
  bool fits = offset >= 0;
  for (int i = 0; fits && i < s.rank(); ++i) fits = s[i] == 1 || s[i] == target[offset + i];
  if (!fits) fail_shape(ctx, message(what, " of shape ", s, " does not broadcast to ", target));
}

double host_number(const ShapeContext& ctx, int input) {
  const HostTensor& t = ctx.host(input);
  if (t.shape.num_elements() != 1)
    fail_shape(ctx, message("input ", input, " has shape ", t.shape, "; expected one element"));
  switch (t.dtype) {
    case DType::kFloat32:
      return *t.as<float>();
    case DType::kFloat64:
      return *t.as<double>();
    case DType::kInt8:
      return *t.as<int8_t>();
    case DType::kUInt8:
      return *t.as<uint8_t>();
    case DType::kInt16:
      return *t.as<int16_t>();
    case DType::kUInt16:
      return *t.as<uint16_t>();
    case DType::kInt32:
      return *t.as<int32_t>();
    case DType::kUInt32:
      return *t.as<uint32_t>();
    case DType::kInt64:
      return static_cast<double>(*t.as<int64_t>());
    case DType::kUInt64:
      return static_cast<double>(*t.as<uint64_t>());
    default:
      fail_shape(ctx, message("input ", input, " is ", t.dtype, "; expected a number"));
  }
}

}  // namespace asc
