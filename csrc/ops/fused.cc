#include "ops/fused.h"

#include "ops/infer.h"

namespace asc {
namespace {

DType fused_type(const Node& node, const std::vector<DType>&, int) {
  const FusedBody& body = fused_body(node);
  return body.step_type(body.step_count() - 1);
}

void infer_fused(InferContext& ctx) {
  const FusedBody& body = fused_body(ctx.node());
  FusedShapes room(body);
  Shape* shapes = room.data();
  for (size_t i = 0; i < body.input_count(); ++i) shapes[i] = ctx.input(static_cast<int>(i));
  infer_fused_steps(ctx, body, shapes);
  ctx.set_output(0, shapes[body.input_count() + body.step_count() - 1]);
}

// The message of a step, which has no name, without its prefix.
std::string what_of(const Node& step, const Error& e) {
  const std::string text = e.what();
  const size_t at = text.find("': ");
  return step.op + ": " + (at == std::string::npos ? text : text.substr(at + 3));
}

}  // namespace

const Op& fused_op(size_t host_count) {
  static const std::vector<Op> kOps = [] {  // not in the registry
    std::vector<Op> ops;
    for (size_t n = 0; n <= kMaxFusedHosts; ++n) {
      ops.push_back(OpDef("Fused", 1, static_cast<int>(kMaxFusedInputs), infer_fused, fused_type));
      ops.back().host_inputs = (uint64_t{1} << n) - 1;
    }
    return ops;
  }();
  return kOps[host_count];
}

const FusedBody& fused_body(const Node& node) {
  return static_cast<const FusedBody&>(*std::get<std::shared_ptr<Graph>>(node.attributes.all().front().data));
}

const HostTensor* FusedBody::host(const ShapeContext& ctx, ValueId v) const {
  const auto i = static_cast<size_t>(v);
  if (i < host_count) return &ctx.host(static_cast<int>(i));
  return i < input_count() + step_count() ? nullptr : value(v).constant.get();
}

StepOperands::StepOperands(const ShapeContext& ctx, const FusedBody& body, size_t step, const Shape* all) {
  for (ValueId v : body.step(step).inputs) {
    if (v != kNoValue) {
      const HostTensor* host = body.host(ctx, v);
      types[count] = host ? host->dtype : body.type(v);
      shapes[count] = host ? &host->shape : all + v;
      hosts[count] = host;
    }
    ++count;
  }
}

void infer_fused_steps(const ShapeContext& ctx, const FusedBody& body, Shape* shapes) {
  for (size_t i = 0; i < body.step_count(); ++i) {
    const StepOperands in(ctx, body, i, shapes);
    InferContext step(body.step(i), in.types, in.shapes, in.hosts, in.count, shapes + body.input_count() + i, 1);
    try {
      body.ops[i]->infer_shape(step);
    } catch (const GraphError& e) {
      fail_shape(ctx, what_of(body.step(i), e));
    } catch (const UnsupportedError& e) {
      fail_unsupported(ctx, what_of(body.step(i), e));
    }
  }
}

}  // namespace asc
