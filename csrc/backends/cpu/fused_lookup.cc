// Fused nodes that are functions of one byte (an activation between two conversions) as a table of 256 bytes.
#include <vector>

#include "backends/cpu/byte_table.h"
#include "backends/cpu/fused.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/tiling_base.h"
#include "base/hash.h"

namespace asc::cpu {
namespace {

struct Lookup : Tiling {
  std::shared_ptr<const Tiling> inner;  // of 256 elements
  int input = 0, inputs = 0;
  int64_t count = 0;
  int threads = 1;
  size_t bytes() const override { return sizeof(Lookup) + inner->bytes(); }
};

Status launch_lookup(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const Lookup*>(task.tiling);
  const auto* table = static_cast<const uint8_t*>(task.packed(slots));
  const auto* x = task.input<uint8_t>(slots, t.input);
  auto* y = task.output<uint8_t>(slots, 0);
  parallel_for(t.threads, t.threads, [&](int64_t i) {
    const Part own = part_of(t.count, 64, t.threads, i);
    look_up(table, x + own.begin, y + own.begin, static_cast<size_t>(own.end - own.begin));
  });
  return Status::kOk;
}

void pack_table(const Tiling& tiling, const void* const* inputs, void* packed) {
  const auto& t = static_cast<const Lookup&>(tiling);
  const auto count = static_cast<size_t>(t.inputs);
  uint8_t bytes[kByteTableSize];
  for (size_t i = 0; i < kByteTableSize; ++i) bytes[i] = static_cast<uint8_t>(i);
  const Buffer workspace(t.inner->workspace_bytes);
  std::vector<void*> slots;
  std::vector<uint32_t> operands;
  for (size_t i = 0; i < count; ++i) slots.push_back(const_cast<void*>(inputs[i]));
  slots[static_cast<size_t>(t.input)] = bytes;
  slots.insert(slots.end(), {packed, const_cast<void*>(workspace.data()), nullptr, nullptr});
  for (size_t i = 0; i < slots.size(); ++i) operands.push_back(static_cast<uint32_t>(i));
  Task task;
  task.tiling = t.inner.get();
  task.operands = operands.data();
  task.input_count = static_cast<uint16_t>(count);
  task.output_count = 1;
  Worker worker;
  t.inner->launch(task, slots.data(), worker);
}

// The only input that is no constant number; -1 where there are others, or steps that are not element-wise.
int find_byte_input(const TilingContext& ctx, const FusedBody& body) {
  int found = -1;
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (ctx.is_constant(i) && count_of(ctx.input(i)) == 1) continue;
    if (found >= 0 || size_of(ctx.dtype(i)) != 1) return -1;
    found = i;
  }
  for (size_t i = 0; i < body.step_count(); ++i) {
    ElementStep step;
    const std::string& op = body.step(i).op;
    if (op != "QuantizeLinear" && op != "DequantizeLinear" && !find_element_step(body.step(i), &step)) return -1;
  }
  return found;
}

// Equal for bodies that compute the same from the same constants.
uint64_t hash_of(const FusedBody& body) {
  std::string text = std::to_string(static_cast<int>(body.type(0)));
  for (size_t i = 0; i < body.step_count(); ++i) {
    const Node& n = body.step(i);
    text += n.op + n.attributes.text() + std::to_string(static_cast<int>(body.step_type(i)));
    for (ValueId v : n.inputs) {
      text += "," + std::to_string(v);
      const HostTensor* constant = v == kNoValue ? nullptr : body.value(v).constant.get();
      if (constant) text += std::string(static_cast<const char*>(constant->data()), constant->bytes());
    }
    text += ";";
  }
  return hash_bytes(text.data(), text.size());
}

}  // namespace

std::shared_ptr<const Tiling> try_lookup(const TilingContext& ctx,
                                         std::shared_ptr<const Tiling> (*build)(const TilingContext& ctx)) {
  constexpr int64_t kWorthIt = 512;   // elements
  constexpr double kByteCost = 0.25;  // operations that take as long as one byte
  const Shape& y = ctx.output(0);
  if (size_of(ctx.output_dtype(0)) != 1 || count_of(y) < kWorthIt) return nullptr;
  const FusedBody& body = fused_body(ctx.node());
  const int input = find_byte_input(ctx, body);
  if (input < 0 || ctx.input(input) != y) return nullptr;
  const Shape all{static_cast<int64_t>(kByteTableSize)};
  std::vector<DType> types;
  std::vector<const Shape*> shapes;
  std::vector<const HostTensor*> hosts;
  for (int i = 0; i < ctx.input_count(); ++i) {
    types.push_back(ctx.dtype(i));
    shapes.push_back(i == input ? &all : &ctx.input(i));
    hosts.push_back(nullptr);
  }
  const DType type = ctx.output_dtype(0);
  const TilingContext inner(ctx.node(), types.data(), shapes.data(), hosts.data(), ctx.input_count(), &type, &all, 1, 0,
                            ctx.options());
  auto t = std::make_shared<Lookup>();
  t->launch = launch_lookup;
  t->implementation = "table of bytes";
  t->inner = build(inner);
  t->input = input;
  t->inputs = ctx.input_count();
  t->count = count_of(y);
  t->threads = threads_for(ctx, kByteCost * static_cast<double>(t->count));
  t->packed_bytes = kByteTableSize;
  t->packed_layout = hash_of(body) | 1;
  t->pack = pack_table;
  return t;
}

}  // namespace asc::cpu
