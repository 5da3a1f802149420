#include "backends/cpu/half_adaptor.h"

#include <memory>
#include <vector>

#include "backends/cpu/tiling_base.h"
#include "backends/cpu/vec_table.h"
#include "base/hash.h"

namespace asc::cpu {
namespace {

constexpr int kMaxInputs = 8, kMaxOutputs = 3;  // LSTM has the most
constexpr uint32_t kIdentity[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
static_assert(sizeof(kIdentity) / sizeof(uint32_t) == kMaxInputs + kMaxOutputs + kExtraOperands);

// Where the float32 kernel finds an operand: not converted, converted by the launch, converted once, or inside its own
// packed copy.
enum class Place : uint8_t { kAbsent, kOriginal, kWorkspace, kPacked, kInner };

struct Operand {
  Place place = Place::kAbsent;
  size_t count = 0, offset = 0;  // elements; bytes
};

struct HalfTiling : Tiling {
  std::shared_ptr<const Tiling> inner;
  void (*to_float)(const uint16_t*, float*, size_t) = nullptr;
  void (*from_float)(const float*, uint16_t*, size_t) = nullptr;
  Operand inputs[kMaxInputs], outputs[kMaxOutputs];
  size_t inner_workspace_offset = 0;
  size_t bytes() const override { return sizeof(HalfTiling) + inner->bytes(); }
};

char* at(void* base, size_t offset) { return static_cast<char*>(base) + offset; }

Status launch_half(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const HalfTiling*>(task.tiling);
  void* workspace = task.workspace(slots);
  void* packed = const_cast<void*>(task.packed(slots));
  void* own[kMaxInputs + kMaxOutputs + kExtraOperands] = {};
  for (int i = 0; i < task.input_count; ++i) {
    const Operand& o = t.inputs[i];
    if (o.place == Place::kOriginal) own[i] = slots[task.operands[i]];
    if (o.place == Place::kPacked) own[i] = at(packed, o.offset);
    if (o.place != Place::kWorkspace) continue;
    own[i] = at(workspace, o.offset);
    t.to_float(task.input<uint16_t>(slots, i), reinterpret_cast<float*>(own[i]), o.count);
  }
  void** outputs = own + task.input_count;
  for (int i = 0; i < task.output_count; ++i)
    if (task.has_output(slots, i))
      outputs[i] =
          t.outputs[i].place == Place::kOriginal ? task.output<void>(slots, i) : at(workspace, t.outputs[i].offset);
  outputs[task.output_count] = at(workspace, t.inner_workspace_offset);
  outputs[task.output_count + 1] = packed;
  Task inner = task;
  inner.launch = t.inner->launch;
  inner.tiling = t.inner.get();
  inner.operands = kIdentity;
  const Status status = t.inner->launch(inner, own, worker);
  for (int i = 0; i < task.output_count && status == Status::kOk; ++i)
    if (task.has_output(slots, i) && t.outputs[i].place != Place::kOriginal)
      t.from_float(static_cast<const float*>(outputs[i]), task.output<uint16_t>(slots, i), t.outputs[i].count);
  return status;
}

void pack_half(const Tiling& tiling, const void* const* inputs, void* packed) {
  const auto& t = static_cast<const HalfTiling&>(tiling);
  const void* converted[kMaxInputs] = {};
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int i = 0; i < kMaxInputs; ++i) {
    const Operand& o = t.inputs[i];
    if (o.place == Place::kOriginal) converted[i] = inputs[i];
    if (o.place != Place::kPacked && o.place != Place::kInner) continue;
    void* target = at(packed, o.offset);
    if (o.place == Place::kInner)
      target = buffers.emplace_back(std::make_unique<Buffer>(o.count * sizeof(float)))->data();
    t.to_float(static_cast<const uint16_t*>(inputs[i]), static_cast<float*>(target), o.count);
    converted[i] = target;
  }
  if (t.inner->pack) t.inner->pack(*t.inner, converted, packed);
}

// What the float32 kernel's tiling sees of the node.
struct FloatView {
  DType types[kMaxInputs] = {}, output_types[kMaxOutputs] = {};
  const Shape* shapes[kMaxInputs] = {};
  const HostTensor* hosts[kMaxInputs] = {};
  Shape output_shapes[kMaxOutputs];
  uint64_t constants = 0;
};

// The type that is converted: that of the first operand which has one.
DType half_type(const TilingContext& ctx) {
  for (int i = 0; i < ctx.input_count(); ++i)
    if (ctx.has_input(i) && kHalfFloats.contains(ctx.dtype(i))) return ctx.dtype(i);
  return ctx.output_dtype(0);
}

FloatView view_of(const TilingContext& ctx, DType half) {
  FloatView v;
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (!ctx.has_input(i)) continue;
    v.types[i] = ctx.dtype(i) == half ? DType::kFloat32 : ctx.dtype(i);
    v.shapes[i] = &ctx.input(i);
    v.hosts[i] = ctx.has_host(i) ? &ctx.host(i) : nullptr;
    v.constants |= static_cast<uint64_t>(ctx.is_constant(i)) << i;
  }
  for (int i = 0; i < ctx.output_count(); ++i) {
    v.output_types[i] = DType::kFloat32;
    v.output_shapes[i] = ctx.output(i);
  }
  return v;
}

size_t take(size_t* total, size_t count) {
  const size_t offset = *total;
  *total += round_up(count * sizeof(float));
  return offset;
}

void place_inputs(const TilingContext& ctx, DType half, uint64_t packed_inputs, HalfTiling* t) {
  t->packed_bytes = round_up(t->inner->packed_bytes);
  uint64_t layout[kMaxInputs + 1] = {mix64(t->inner->packed_layout, reinterpret_cast<uintptr_t>(t->inner->pack))};
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (!ctx.has_input(i)) continue;
    Operand& o = t->inputs[i];
    o.count = static_cast<size_t>(count_of(ctx.input(i)));
    if (ctx.dtype(i) != half) {
      o.place = Place::kOriginal;
    } else if (!ctx.is_constant(i)) {
      o.place = Place::kWorkspace;
      o.offset = take(&t->workspace_bytes, o.count);
    } else if (t->inner->packed_bytes > 0 && ((packed_inputs >> i) & 1u)) {
      o.place = Place::kInner;
    } else {
      o.place = Place::kPacked;
      o.offset = take(&t->packed_bytes, o.count);
    }
    layout[i + 1] = static_cast<uint64_t>(o.place) | o.offset << 3;
  }
  if (t->packed_bytes == 0) return;
  t->packed_layout = mix64(hash_words(layout, kMaxInputs + 1), static_cast<uint64_t>(half)) | 1;
  t->pack = pack_half;
}

}  // namespace

std::shared_ptr<const Tiling> create_half_tiling(const TilingContext& ctx, TilingFn float_tiling,
                                                 uint64_t packed_inputs) {
  if (ctx.input_count() > kMaxInputs || ctx.output_count() > kMaxOutputs)
    ctx.unsupported("more operands than the float16 kernels know; insert Casts to float32");
  const DType half = half_type(ctx);
  const FloatView v = view_of(ctx, half);
  const TilingContext inner(ctx.node(), v.types, v.shapes, v.hosts, ctx.input_count(), v.output_types, v.output_shapes,
                            ctx.output_count(), v.constants, ctx.options());
  auto t = std::make_shared<HalfTiling>();
  t->inner = float_tiling(inner);
  ctx.note_threads(inner.threads_used());
  t->launch = launch_half;
  t->implementation = t->inner->implementation;
  const bool is_float16 = half == DType::kFloat16;
  t->to_float = is_float16 ? vec_table().float16_to_float32 : vec_table().bfloat16_to_float32;
  t->from_float = is_float16 ? vec_table().float32_to_float16 : vec_table().float32_to_bfloat16;
  place_inputs(ctx, half, packed_inputs, t.get());
  for (int i = 0; i < ctx.output_count(); ++i) {
    if (ctx.output_dtype(i) != half) {
      t->outputs[i].place = Place::kOriginal;
      continue;
    }
    t->outputs[i].count = static_cast<size_t>(count_of(v.output_shapes[i]));
    t->outputs[i].offset = take(&t->workspace_bytes, t->outputs[i].count);
  }
  t->inner_workspace_offset = t->workspace_bytes;
  t->workspace_bytes += t->inner->workspace_bytes;
  return t;
}

}  // namespace asc::cpu
