#include "backends/plugin/kernels.h"

#include <algorithm>
#include <cstring>

#include "ops/extension.h"

namespace asc {
namespace {

DType dtype_of(int32_t onnx) {
  for (int i = 1; i < kDTypeCount; ++i)
    if (onnx_number(static_cast<DType>(i)) == onnx) return static_cast<DType>(i);
  return DType::kUndefined;
}

// Devices run such tasks through their own streams.
Status launch_elsewhere(const Task&, void* const*, Worker& worker) {
  return worker.fail(Status::kFailed, "a plug-in's task was launched on another device");
}

asc_tensor describe_input(const TilingContext& ctx, int i) {
  if (!ctx.has_input(i)) return asc_tensor{};
  asc_tensor t = describe(ctx.dtype(i), ctx.input(i));
  const Op* op = OpRegistry::instance().find(ctx.node().op);
  const bool is_read = op && i < 64 && ((op->host_inputs >> i) & 1u);
  if (is_read && ctx.has_host(i)) t.data = const_cast<void*>(ctx.host(i).data());
  return t;
}

int copy_tensor(const void*, const asc_tensor* inputs, int32_t, asc_tensor* outputs, int32_t, char*) {
  const asc_tensor& from = inputs[0];
  size_t bytes = size_of(dtype_of(from.type));
  for (int d = 0; d < from.rank; ++d) bytes *= static_cast<size_t>(from.shape[d]);
  if (bytes) std::memcpy(outputs[0].data, from.data, bytes);
  return ASC_OK;
}

}  // namespace

const asc_kernel& identity_kernel() {
  static const asc_kernel kernel{"Identity", ~uint32_t{0}, 0, nullptr, nullptr, copy_tensor};
  return kernel;
}

Status status_of(int status) {
  if (status == ASC_OUT_OF_MEMORY) return Status::kOutOfMemory;
  if (status == ASC_INVALID_INPUT) return Status::kInvalidValue;
  return Status::kFailed;
}

PluginTiling::~PluginTiling() {
  if (!data || !kernel->free_tiling) return;
  try {
    kernel->free_tiling(data);
  } catch (...) {  // nobody is left to be told
  }
}

std::shared_ptr<const Tiling> make_plugin_tiling(const TilingContext& ctx) {
  auto t = std::make_shared<PluginTiling>();
  t->kernel = static_cast<const asc_kernel*>(ctx.kernel_data());
  t->launch = launch_elsewhere;
  t->implementation = "plug-in";
  t->output_count = ctx.output_count();
  const Op* op = OpRegistry::instance().find(ctx.node().op);
  t->has_extents = op && op->kind == OpKind::kDataDependent;
  for (int i = 0; i < ctx.input_count(); ++i) t->operands.push_back(describe_input(ctx, i));
  for (int i = 0; i < ctx.output_count(); ++i) t->operands.push_back(describe(ctx.output_dtype(i), ctx.output(i)));
  if (t->kernel->tiling) {
    asc_context context = make_context(ctx.node());
    const asc_tensor* operands = t->operands.data();
    int status = ASC_OK;
    try {
      status = t->kernel->tiling(&context, operands, ctx.input_count(), operands + ctx.input_count(),
                                 ctx.output_count(), &t->data);
    } catch (...) {  // a C++ function behind the C interface
      ctx.unsupported("the plug-in's tiling threw an exception, which it must not");
    }
    context.error[ASC_ERROR_BYTES - 1] = 0;
    if (status != ASC_OK)
      ctx.unsupported(context.error[0] ? context.error : "the plug-in's tiling failed with " + std::to_string(status));
  }
  for (asc_tensor& operand : t->operands) operand.data = nullptr;
  return t;
}

asc_task make_plugin_task(const Task& task) {
  const auto& tiling = *static_cast<const PluginTiling*>(task.tiling);
  const int extent = task.input_count + task.output_count + 2;
  return {tiling.kernel,
          tiling.data,
          tiling.operands.data(),
          task.operands,
          task.input_count,
          task.output_count,
          tiling.has_extents ? task.operands[extent] : 0,
          task.node};
}

Status run_plugin_task(const asc_task& task, void* const* table, std::string& error) noexcept try {
  constexpr int kUsual = ASC_MAX_OPERANDS;
  asc_tensor few[kUsual];
  std::vector<asc_tensor> many;
  const int count = task.input_count + task.output_count;
  asc_tensor* operands = few;
  if (count > kUsual) {
    many.resize(static_cast<size_t>(count));
    operands = many.data();
  }
  for (int i = 0; i < count; ++i) {
    operands[i] = task.operands[i];
    operands[i].data = table[task.slots[i]];
  }
  asc_tensor* outputs = operands + task.input_count;
  char text[ASC_ERROR_BYTES] = "";
  const int status = task.kernel->launch(task.tiling, operands, task.input_count, outputs, task.output_count, text);
  if (__builtin_expect(status != ASC_OK, 0)) {
    text[ASC_ERROR_BYTES - 1] = 0;
    error = text[0] ? text : "the plug-in's kernel failed with " + std::to_string(status);
    return status_of(status);
  }
  if (task.extent_slot) {
    auto* extent = static_cast<int64_t*>(table[task.extent_slot]);
    for (int i = 0; i < task.output_count; ++i, extent += kMaxRank)
      std::copy(outputs[i].shape, outputs[i].shape + kMaxRank, extent);
  }
  return Status::kOk;
} catch (const std::bad_alloc&) {
  return Status::kOutOfMemory;
} catch (...) {  // a C++ function behind the C interface
  error = "the plug-in's kernel threw an exception, which it must not";
  return Status::kFailed;
}

DTypeSet types_of(uint32_t bits) {
  DTypeSet types;
  for (int number = 1; number < 32; ++number)
    if (bits & ASC_TYPE_BIT(number) && dtype_of(number) != DType::kUndefined) types = types | dtype_of(number);
  return types;
}

}  // namespace asc
