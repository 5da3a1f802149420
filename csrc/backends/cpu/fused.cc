// Fused nodes. Their steps become units, run one after the other in one launch: operators that have kernels of their
// own, and element-wise programs between them. What passes from unit to unit lies in workspace, or in the result's own
// memory where the next unit may work in place.
#include <algorithm>
#include <string>

#include "backends/cpu/device.h"
#include "backends/cpu/element_program.h"
#include "backends/cpu/fused_norm.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/tiling_base.h"
#include "base/hash.h"
#include "ops/fused.h"

namespace asc::cpu {
namespace {

// The table of a launch: absent operand, inputs, results of steps, then a workspace and a packed entry per unit.
constexpr size_t kMaxTable = 1 + kMaxFusedInputs + 3 * kMaxFusedSteps;

enum class UnitKind : uint8_t { kProgram, kNorm, kKernel };

struct Unit {
  UnitKind kind = UnitKind::kProgram;
  ElementProgram program;
  NormRows norm;
  std::shared_ptr<const Tiling> inner;
  Task task;                           // of the inner tiling; its node is unknown
  std::vector<uint32_t> operands;      // table indices: inputs, result, workspace, packed, extent
  std::vector<ValueId> packed_inputs;  // inputs of the fused node that the unit's inputs are; kNoValue for others
  size_t packed_offset = 0;
};

struct FusedTiling : Tiling {
  struct Place {
    uint32_t index = 0;
    size_t offset = 0;
  };
  std::vector<Unit> units;
  std::vector<Place> in_workspace, in_packed, in_result;
  std::string text;  // behind `implementation`

  size_t bytes() const override {
    size_t n = sizeof(FusedTiling) + (in_workspace.size() + in_packed.size() + in_result.size()) * sizeof(Place);
    for (const Unit& u : units)
      n += sizeof(Unit) + u.operands.size() * sizeof(uint32_t) + (u.inner ? u.inner->bytes() : u.program.bytes());
    return n;
  }
};

char* at(void* base, size_t offset) { return static_cast<char*>(base) + offset; }

Status launch_fused(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const FusedTiling*>(task.tiling);
  void* table[kMaxTable];
  table[0] = nullptr;
  for (int i = 0; i < task.input_count; ++i) table[1 + i] = slots[task.operands[i]];
  for (const FusedTiling::Place& p : t.in_workspace) table[p.index] = at(task.workspace(slots), p.offset);
  for (const FusedTiling::Place& p : t.in_packed) table[p.index] = at(const_cast<void*>(task.packed(slots)), p.offset);
  for (const FusedTiling::Place& p : t.in_result) table[p.index] = task.output<void>(slots, 0);
  for (const Unit& u : t.units) {
    if (u.kind == UnitKind::kProgram) {
      u.program.run([&](uint32_t i) { return table[i]; }, static_cast<float*>(table[u.operands[0]]));
      continue;
    }
    if (u.kind == UnitKind::kNorm) {
      u.norm.run([&](uint32_t i) { return table[i]; }, static_cast<float*>(table[u.operands[0]]));
      continue;
    }
    const Status status = u.task.launch(u.task, table, worker);
    if (__builtin_expect(status != Status::kOk, 0)) return status;
  }
  return Status::kOk;
}

// A single unit without a kernel of its own needs no table.
Status launch_program(const Task& task, void* const* slots, Worker&) {
  const Unit& u = static_cast<const FusedTiling*>(task.tiling)->units[0];
  u.program.run([&](uint32_t i) { return slots[task.operands[i - 1]]; }, task.output<float>(slots, 0));
  return Status::kOk;
}
Status launch_norm(const Task& task, void* const* slots, Worker&) {
  const Unit& u = static_cast<const FusedTiling*>(task.tiling)->units[0];
  u.norm.run([&](uint32_t i) { return i ? slots[task.operands[i - 1]] : nullptr; }, task.output<float>(slots, 0));
  return Status::kOk;
}

LaunchFn choose_launch(const FusedTiling& t) {
  if (t.units.size() > 1 || t.units[0].kind == UnitKind::kKernel) return launch_fused;
  return t.units[0].kind == UnitKind::kNorm ? launch_norm : launch_program;
}

void pack_fused(const Tiling& tiling, const void* const* inputs, void* packed) {
  for (const Unit& u : static_cast<const FusedTiling&>(tiling).units) {
    if (!u.inner || u.inner->packed_bytes == 0) continue;
    const void* own[kMaxStepInputs] = {};
    for (size_t i = 0; i < u.packed_inputs.size(); ++i)
      if (u.packed_inputs[i] != kNoValue) own[i] = inputs[u.packed_inputs[i]];
    u.inner->pack(*u.inner, own, at(packed, u.packed_offset));
  }
}

class Builder {
 public:
  explicit Builder(const TilingContext& ctx)
      : ctx_(ctx),
        body_(fused_body(ctx.node())),
        inputs_(body_.input_count()),
        steps_(body_.step_count()),
        tiling_(std::make_shared<FusedTiling>()) {
    for (size_t i = 0; i < inputs_; ++i) shapes_[i] = ctx.input(static_cast<int>(i));
    infer_fused_steps(ctx, body_, shapes_);
  }

  std::shared_ptr<const Tiling> build() {
    if (count_of(ctx_.output(0)) == 0) return create_empty_tiling();
    norms_ = find_norms(body_, shapes_);
    find_roots();
    place_values();
    for (size_t i = 0; i < steps_; ++i) {
      if (root_[i] != i) continue;
      if (const FoundNorm* norm = norm_of(i))
        add_norm(*norm);
      else
        is_element_[i] ? add_program(i) : add_kernel(i);
    }
    tiling_->workspace_bytes += inner_workspace_;
    tiling_->launch = choose_launch(*tiling_);
    tiling_->text = "fused (" + tiling_->text + ")";
    tiling_->implementation = tiling_->text.c_str();
    set_packed_layout();
    return tiling_;
  }

 private:
  const Shape& shape(size_t step) const { return shapes_[inputs_ + step]; }
  bool is_step(ValueId v) const { return v != kNoValue && static_cast<size_t>(v) >= inputs_ && step_of(v) < steps_; }
  size_t step_of(ValueId v) const { return static_cast<size_t>(v) - inputs_; }
  static uint32_t table_index(ValueId v) { return static_cast<uint32_t>(v + 1); }
  uint32_t result_index(size_t step) const { return static_cast<uint32_t>(1 + inputs_ + step); }

  const FoundNorm* norm_of(size_t step) const {
    for (const FoundNorm& n : norms_)
      if ((n.members >> step) & 1u) return &n;
    return nullptr;
  }

  // The last step of the unit that each step belongs to. An element-wise step belongs to the only unit that reads it,
  // where that is a program of the same shape: otherwise it is a unit's last step, and its result is stored.
  void find_roots() {
    size_t
        reader[kMaxFusedSteps];  // root of the units that read the step; steps_: several, or none that can take it in
    for (size_t i = 0; i < steps_; ++i) {
      is_element_[i] = !norm_of(i) && find_element_step(body_.step(i), &element_[i]);
      reader[i] = kUnread;
    }
    for (size_t i = steps_; i-- > 0;) {
      const bool joins = is_element_[i] && reader[i] < steps_;
      root_[i] = joins ? reader[i] : i;
      const FoundNorm* norm = norm_of(i);
      if (norm) root_[i] = norm->last;
      for (ValueId v : body_.step(i).inputs) {
        if (!is_step(v)) continue;
        size_t& r = reader[step_of(v)];
        const bool can_join = is_element_[i] && shape(step_of(v)) == shape(root_[i]);
        r = can_join && (r == kUnread || r == root_[i]) ? root_[i] : steps_;
      }
    }
  }

  // The last unit writes the result. A unit whose result only the next writer of the result's memory reads, and may
  // overwrite, writes there too; others get workspace.
  void place_values() {
    size_t in_place = steps_ - 1;
    tiling_->in_result.push_back({result_index(in_place), 0});
    for (size_t i = steps_ - 1; i-- > 0;) {
      if (root_[i] != i) continue;
      if (shape(i) == shape(steps_ - 1) && can_overwrite(in_place, i)) {
        tiling_->in_result.push_back({result_index(i), 0});
        in_place = i;
      } else {
        tiling_->in_workspace.push_back({result_index(i), tiling_->workspace_bytes});
        tiling_->workspace_bytes += round_up(static_cast<size_t>(count_of(shape(i))) * sizeof(float));
      }
    }
  }

  // Whether unit `by` alone reads the result of step `what`, and reads each element before it writes it.
  bool can_overwrite(size_t by, size_t what) const {
    const auto v = static_cast<ValueId>(inputs_ + what);
    for (size_t i = 0; i < steps_; ++i)
      for (size_t k = 0; k < body_.step(i).inputs.size(); ++k) {
        if (body_.step(i).inputs[k] != v) continue;
        if (root_[i] != by) return false;
        if (is_element_[by] || norm_of(by)) continue;
        const std::string& op = body_.step(i).op;
        if (k != 0 || (op != "Softmax" && op != "LogSoftmax" && op != "LayerNormalization" && op != "RMSNormalization"))
          return false;
      }
    return true;
  }

  void add_program(size_t root) {
    Unit unit;
    int numbers[kMaxFusedSteps];
    for (size_t i = 0; i <= root; ++i) {
      if (root_[i] != root) continue;
      for (ValueId v : body_.step(i).inputs)
        if (is_outside(v, root)) unit.program.add_operand(table_index(v), shapes_[v]);
    }
    for (size_t i = 0; i <= root; ++i) {
      if (root_[i] != root) continue;
      int in[kMaxStepInputs], count = 0;
      for (ValueId v : body_.step(i).inputs)
        in[count++] = v == kNoValue         ? -1
                      : is_outside(v, root) ? unit.program.add_operand(table_index(v), shapes_[v])
                                            : numbers[step_of(v)];
      numbers[i] = unit.program.add_step(element_[i], in, count);
    }
    unit.program.finish(shape(root));
    unit.operands = {result_index(root)};
    append_unit(std::move(unit), "vector");
  }
  bool is_outside(ValueId v, size_t root) const { return v != kNoValue && (!is_step(v) || root_[step_of(v)] != root); }

  void add_norm(const FoundNorm& found) {
    const Shape& x = shapes_[found.x];
    Unit unit;
    unit.kind = UnitKind::kNorm;
    unit.norm.is_rms = found.is_rms;
    unit.norm.x = table_index(found.x);
    unit.norm.epsilon = table_index(found.epsilon);
    unit.norm.scale = table_index(found.scale);
    unit.norm.bias = table_index(found.bias);
    unit.norm.rows = static_cast<size_t>(x.span_of(0, x.rank() - 1));
    unit.norm.n = static_cast<size_t>(x[x.rank() - 1]);
    unit.operands = {result_index(found.last)};
    append_unit(std::move(unit), "vector:norm");
  }

  void add_kernel(size_t step) {
    const StepOperands in(body_, step, shapes_);
    const DType type = DType::kFloat32;
    Unit unit;
    unit.kind = UnitKind::kKernel;
    uint64_t constants = 0;
    for (size_t i = 0; i < body_.step(step).inputs.size(); ++i) {
      const ValueId v = body_.step(step).inputs[i];
      const bool is_input = v != kNoValue && static_cast<size_t>(v) < inputs_;
      const bool is_constant = in.hosts[i] || (is_input && ctx_.is_constant(static_cast<int>(v)));
      constants |= static_cast<uint64_t>(is_constant) << i;
      unit.packed_inputs.push_back(is_input && is_constant ? v : kNoValue);
      unit.operands.push_back(v == kNoValue || in.hosts[i] ? 0 : table_index(v));
    }
    const TilingContext inner(body_.step(step), in.types, in.shapes, in.hosts, in.count, &type, &shape(step), 1,
                              constants, ctx_.options());
    unit.inner = tile(inner);
    unit.operands.push_back(result_index(step));
    add_memory(&unit);
    unit.task.launch = unit.inner->launch;
    unit.task.tiling = unit.inner.get();
    unit.task.operands = unit.operands.data();  // stays where it is when the unit is moved
    unit.task.input_count = static_cast<uint16_t>(unit.operands.size() - 1 - kExtraOperands);
    unit.task.output_count = 1;
    const char* text = unit.inner->implementation;
    append_unit(std::move(unit), text);
  }

  std::shared_ptr<const Tiling> tile(const TilingContext& inner) const {
    const std::vector<DType> types{DType::kFloat32};
    try {
      const Kernel* kernel = cpu_kernels().find(inner.node().op, types, DType::kFloat32);
      if (!kernel) ctx_.unsupported("no kernel for " + inner.node().op + "; compile with fuse=False");
      return kernel->tiling(inner);
    } catch (const UnsupportedError& e) {
      ctx_.unsupported(e.what());
    } catch (const GraphError& e) {
      fail_tiling(ctx_, e.what());
    }
  }

  // Workspace and packed constants of an inner tiling. Units run one after the other, hence share their workspace.
  void add_memory(Unit* unit) {
    const auto number = static_cast<uint32_t>(1 + inputs_ + steps_ + 2 * tiling_->units.size());
    unit->operands.push_back(unit->inner->workspace_bytes ? number : 0);
    unit->operands.push_back(unit->inner->packed_bytes ? number + 1 : 0);
    unit->operands.push_back(0);
    if (unit->inner->workspace_bytes) {
      tiling_->in_workspace.push_back({number, tiling_->workspace_bytes});
      inner_workspace_ = std::max(inner_workspace_, round_up(unit->inner->workspace_bytes));
    }
    if (unit->inner->packed_bytes) {
      unit->packed_offset = tiling_->packed_bytes;
      tiling_->in_packed.push_back({number + 1, unit->packed_offset});
      tiling_->packed_bytes += round_up(unit->inner->packed_bytes);
    }
  }

  void append_unit(Unit unit, const char* text) {
    tiling_->text += (tiling_->text.empty() ? "" : ", ") + std::string(text);
    tiling_->units.push_back(std::move(unit));
  }

  void set_packed_layout() {
    if (tiling_->packed_bytes == 0) return;
    uint64_t layout = 0;
    for (const Unit& u : tiling_->units) {
      if (!u.inner || u.inner->packed_bytes == 0) continue;
      layout = mix64(layout ^ u.inner->packed_layout, u.packed_offset);
      for (ValueId v : u.packed_inputs) layout = mix64(layout, static_cast<uint64_t>(v + 1));
    }
    tiling_->packed_layout = layout | 1;
    tiling_->pack = pack_fused;
  }

  static constexpr size_t kUnread = ~size_t{0};

  const TilingContext& ctx_;
  const FusedBody& body_;
  const size_t inputs_, steps_;
  const std::shared_ptr<FusedTiling> tiling_;
  Shape shapes_[kMaxFusedInputs + kMaxFusedSteps];
  std::vector<FoundNorm> norms_;
  ElementStep element_[kMaxFusedSteps];
  bool is_element_[kMaxFusedSteps] = {};
  size_t root_[kMaxFusedSteps] = {};
  size_t inner_workspace_ = 0;
};

std::shared_ptr<const Tiling> tile_fused(const TilingContext& ctx) { return Builder(ctx).build(); }

}  // namespace
}  // namespace asc::cpu

namespace asc {

void register_fused_kernels(KernelRegistry& registry) {
  registry.add(fused_op().name, DType::kFloat32, cpu::tile_fused);
}

}  // namespace asc
