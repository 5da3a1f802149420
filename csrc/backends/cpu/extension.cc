// Operators that packages bring, in C.
#include "ops/extension.h"

#include "backends/cpu/kernels.h"
#include "backends/cpu/tiling_base.h"

namespace asc::cpu {
namespace {

struct ExtensionTiling final : Tiling {
  ~ExtensionTiling() override {
    if (data && op->free_tiling) op->free_tiling(data);
  }
  size_t bytes() const override { return sizeof(*this); }

  const asc_operator* op = nullptr;
  void* data = nullptr;  // the operator's own
  int input_count = 0;
  asc_tensor operands[ASC_MAX_OPERANDS];  // shapes and types: inputs, then outputs
};

Status launch_extension(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const ExtensionTiling*>(task.tiling);
  asc_tensor operands[ASC_MAX_OPERANDS];
  const int count = t.input_count + t.op->outputs;
  for (int i = 0; i < count; ++i) {
    operands[i] = t.operands[i];
    operands[i].data = slots[task.operands[i]];
  }
  char error[ASC_ERROR_BYTES] = "";
  int status = 0;
  try {
    status = t.op->launch(t.data, operands, t.input_count, operands + t.input_count, error);
  } catch (...) {  // a C++ function behind the C interface
    return worker.fail(Status::kFailed, std::string(t.op->name) + " threw an exception, which it must not");
  }
  if (__builtin_expect(status == 0, 1)) return Status::kOk;
  error[ASC_ERROR_BYTES - 1] = 0;
  return worker.fail(Status::kFailed, std::string(t.op->name) + ": " +
                                          (error[0] ? std::string(error) : "failed with " + std::to_string(status)));
}

std::shared_ptr<const Tiling> tile_extension(const TilingContext& ctx) {
  const asc_operator& op = extension_of(ctx.node());
  auto t = create_tiling<ExtensionTiling>(launch_extension, "extension");
  t->op = &op;
  t->input_count = ctx.input_count();
  for (int i = 0; i < ctx.input_count(); ++i)
    t->operands[i] = ctx.has_input(i) ? describe(ctx.dtype(i), ctx.input(i)) : asc_tensor{};
  for (int i = 0; i < op.outputs; ++i)
    t->operands[ctx.input_count() + i] = describe(ctx.output_dtype(i), ctx.output(i));
  if (op.tiling) {
    ExtensionCall call(ctx.node(), "tiling");
    const asc_tensor* operands = t->operands;
    call.check(
        [&] { return op.tiling(call.context(), operands, ctx.input_count(), operands + ctx.input_count(), &t->data); });
  }
  return t;
}

}  // namespace
}  // namespace asc::cpu

namespace asc {

void register_extension_kernels(KernelRegistry& registry) { registry.add("Extension", kAnyType, cpu::tile_extension); }

}  // namespace asc
