// Fused nodes. Their steps become units, run one after the other in one launch: operators that have kernels of their
// own, and element-wise programs between them. What passes from unit to unit lies in workspace, or in the result's own
// memory where the next unit may work in place.
#include <algorithm>
#include <string>

#include "backends/cpu/device.h"
#include "backends/cpu/fused.h"
#include "backends/cpu/fused_attention.h"
#include "backends/cpu/fused_conv.h"
#include "backends/cpu/fused_rotation.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/tiling_base.h"

namespace asc::cpu {
namespace {

using Memory = FusedTiling::Memory;

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
    attention_ = find_attention(ctx_, body_, shapes_);
    conv_ = find_conv(ctx_, body_, shapes_);
    find_steps();
    find_roots();
    reserve();
    place_values();
    for (size_t i = 0; i < steps_; ++i) {
      if (root_[i] != i) continue;
      if (const FoundNorm* norm = norm_of(i))
        add_norm(*norm);
      else if (is_attention(i))
        add_attention();
      else if (is_conv(i))
        add_conv();
      else if (is_view(i))
        add_alias(i);
      else
        is_element_[i] ? add_program(i) : add_kernel(i);
    }
    tiling_->workspace_bytes += inner_workspace_;
    tiling_->text += ")";
    tiling_->implementation = tiling_->text.c_str();
    finish_fused(tiling_.get());
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

  bool is_view(size_t step) const { return body_.ops[step]->kind == OpKind::kView; }
  bool is_attention(size_t step) const { return attention_.tiling && attention_.last == step; }
  bool is_conv(size_t step) const { return conv_.tiling && conv_.last == step; }

  // At once: tilings are many and live long, and what grows piece by piece leaves holes between them.
  void reserve() {
    size_t units = 0, kernels = 0;
    for (size_t i = 0; i < steps_; ++i) {
      if (root_[i] != i) continue;
      ++units;
      kernels += !is_element_[i] && !norm_of(i);
    }
    tiling_->units.reserve(units);
    tiling_->inner.reserve(kernels);
    tiling_->places.reserve(units + 2 * kernels);
    tiling_->text.reserve(16 + 24 * units);
    tiling_->text = "fused (";
  }

  // What each step reads, and its function where it is element-wise. Steps that a rotation makes needless have no unit.
  void find_steps() {
    for (size_t i = 0; i < steps_; ++i) {
      inputs_of_[i] = body_.step(i).inputs;
      is_element_[i] = !norm_of(i) && (find_conversion(i) || find_element_step(body_.step(i), &element_[i]));
    }
    if (attention_.tiling) join(attention_.members, attention_.last, attention_.operands);
    if (conv_.tiling) join(conv_.members, conv_.last, conv_.operands);
    for (const FoundRotation& r : find_rotations(ctx_, body_, shapes_, ElementProgram::kTile)) {
      join(r.members, r.last, {r.x});
      element_[r.last] = r.step;
      is_element_[r.last] = true;
    }
    for (size_t i = 0; i < steps_; ++i) try_swish(i);
  }

  // x times Sigmoid(x), which nobody else reads, as one step.
  void try_swish(size_t i) {
    if (!is_element_[i] || body_.step(i).op != "Mul") return;
    for (size_t k : {0, 1}) {
      const ValueId x = inputs_of_[i][k], v = inputs_of_[i][1 - k];
      if (!is_step(v) || !is_element_[step_of(v)] || body_.step(step_of(v)).op != "Sigmoid") continue;
      int readers = 0;
      for (size_t j = 0; j < steps_; ++j)
        readers += static_cast<int>(std::count(inputs_of_[j].begin(), inputs_of_[j].end(), v));
      if (readers != 1 || inputs_of_[step_of(v)][0] != x) continue;
      join(uint32_t{1} << step_of(v) | uint32_t{1} << i, i, {x});
      element_[i] = {};
      element_[i].param = vec_table().swish;
      element_[i].p = 1.0f;
      is_element_[i] = true;
      return;
    }
  }

  bool find_conversion(size_t i) {
    const bool is_up = body_.step(i).op == "DequantizeLinear";
    if (!is_up && body_.step(i).op != "QuantizeLinear") return false;
    element_[i].conversion = is_up ? ElementStep::Conversion::kFromBytes : ElementStep::Conversion::kToBytes;
    element_[i].is_signed = (is_up ? type(body_.step(i).inputs[0]) : body_.step_type(i)) == DType::kInt8;
    return true;
  }
  DType type(ValueId v) const { return body_.type(v); }

  // Several steps as one that reads `operands`.
  void join(uint32_t members, size_t last, std::vector<ValueId> operands) {
    for (size_t i = 0; i < steps_; ++i) {
      if (!((members >> i) & 1u)) continue;
      inputs_of_[i].clear();
      is_element_[i] = false;
      is_needless_[i] = i != last;
    }
    inputs_of_[last] = std::move(operands);
  }

  // The last step of the unit that each step belongs to. An element-wise step belongs to the only unit that reads it,
  // where that is a program of the same shape: otherwise it is a unit's last step, and its result is stored.
  void find_roots() {
    size_t reader[kMaxFusedSteps];  // root of the unit that reads the step; steps_: several, or one that cannot join it
    for (size_t i = 0; i < steps_; ++i) reader[i] = kUnread;
    for (size_t i = steps_; i-- > 0;) {
      const bool joins = is_element_[i] && reader[i] < steps_;
      root_[i] = joins ? reader[i] : i;
      const FoundNorm* norm = norm_of(i);
      if (norm) root_[i] = norm->last;
      if (is_needless_[i]) root_[i] = kUnread;
      for (ValueId v : inputs_of_[i]) {
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
    tiling_->places.push_back({Memory::kResult, result_index(in_place), 0});
    for (size_t i = steps_ - 1; i-- > 0;) {
      if (root_[i] != i || is_view(i)) continue;
      const size_t size = size_of(body_.step_type(i));
      if (shape(i) == shape(steps_ - 1) && size == size_of(body_.step_type(steps_ - 1)) && can_overwrite(in_place, i)) {
        tiling_->places.push_back({Memory::kResult, result_index(i), 0});
        in_place = i;
      } else {
        tiling_->places.push_back({Memory::kWorkspace, result_index(i), tiling_->workspace_bytes});
        tiling_->workspace_bytes += round_up(static_cast<size_t>(count_of(shape(i))) * size);
      }
    }
  }

  // Whether unit `by` alone reads the result of step `what`, and reads each element before it writes it.
  bool can_overwrite(size_t by, size_t what) const {
    const auto v = static_cast<ValueId>(inputs_ + what);
    for (size_t i = 0; i < steps_; ++i)
      for (size_t k = 0; k < inputs_of_[i].size(); ++k) {
        if (inputs_of_[i][k] != v) continue;
        if (root_[i] != by) return false;
        if (is_element_[by] || norm_of(by)) continue;
        const std::string& op = body_.step(i).op;
        if (k != 0 || (op != "Softmax" && op != "LogSoftmax" && op != "LayerNormalization" && op != "RMSNormalization"))
          return false;
      }
    return true;
  }

  void add_program(size_t root) {
    auto program = std::make_unique<ElementProgram>();
    int numbers[kMaxFusedSteps];
    for (size_t i = 0; i <= root; ++i) {
      if (root_[i] != root) continue;
      for (ValueId v : inputs_of_[i])
        if (is_outside(v, root)) program->add_operand(table_index(v), shapes_[v], size_of(type(v)));
    }
    for (size_t i = 0; i <= root; ++i) {
      if (root_[i] != root) continue;
      int in[kMaxStepInputs], count = 0;
      for (ValueId v : inputs_of_[i])
        in[count++] = v == kNoValue         ? -1
                      : is_outside(v, root) ? program->add_operand(table_index(v), shapes_[v], size_of(type(v)))
                                            : numbers[step_of(v)];
      numbers[i] = program->add_step(element_[i], in, count);
    }
    constexpr double kElementCost = 32;  // an element passes through memory in the time of so many operations
    program->finish(shape(root), threads_for(ctx_, kElementCost * static_cast<double>(count_of(shape(root)))));
    FusedUnit unit;
    unit.result = result_index(root);
    if (StepRow row; program->is_step_row(&row))
      unit.what = row;
    else
      unit.what = std::move(program);
    append_unit(std::move(unit), "vector");
  }
  bool is_outside(ValueId v, size_t root) const { return v != kNoValue && (!is_step(v) || root_[step_of(v)] != root); }

  void add_norm(const FoundNorm& found) {
    const Shape& x = shapes_[found.x];
    FusedUnit unit;
    NormRows norm;
    norm.is_rms = found.is_rms;
    norm.x = table_index(found.x);
    norm.epsilon = table_index(found.epsilon);
    norm.scale = table_index(found.scale);
    norm.bias = table_index(found.bias);
    norm.rows = static_cast<size_t>(x.span_of(0, x.rank() - 1));
    norm.n = static_cast<size_t>(x[x.rank() - 1]);
    unit.result = result_index(found.last);
    unit.what = norm;
    append_unit(std::move(unit), "vector:norm");
  }

  void add_alias(size_t step) {
    FusedUnit unit;
    unit.result = result_index(step);
    unit.what = Alias{table_index(body_.step(step).inputs[0])};
    append_unit(std::move(unit), "view");
  }

  void add_attention() {
    KernelCall call;
    InnerTiling inner;
    inner.tiling = attention_.tiling;
    uint32_t* next = call.operands;
    for (ValueId v : attention_.operands) *next++ = table_index(v);
    add_call(call, std::move(inner), attention_.last, attention_.operands.size());
  }

  void add_conv() {
    KernelCall call;
    InnerTiling inner;
    inner.tiling = conv_.tiling;
    inner.packed_inputs[1] = conv_.operands[1];
    uint32_t* next = call.operands;
    for (ValueId v : conv_.operands) *next++ = v == kNoValue ? 0 : table_index(v);
    add_call(call, std::move(inner), conv_.last, conv_.operands.size());
  }

  void add_kernel(size_t step) {
    const StepOperands in(ctx_, body_, step, shapes_);
    const DType type = body_.step_type(step);
    KernelCall call;
    InnerTiling inner;
    uint64_t constants = 0;
    for (int i = 0; i < in.count; ++i) {
      const ValueId v = body_.step(step).inputs[static_cast<size_t>(i)];
      const bool is_input = v != kNoValue && static_cast<size_t>(v) < inputs_;
      const bool is_constant = in.hosts[i] || (is_input && ctx_.is_constant(static_cast<int>(v)));
      constants |= static_cast<uint64_t>(is_constant) << i;
      if (is_input && is_constant) inner.packed_inputs[i] = v;
      call.operands[i] = in.hosts[i] ? 0 : table_index(v);
    }
    const TilingContext ctx(body_.step(step), in.types, in.shapes, in.hosts, in.count, &type, &shape(step), 1,
                            constants, ctx_.options());
    inner.tiling = tile(ctx);
    add_call(call, std::move(inner), step, static_cast<size_t>(in.count));
  }

  // A call whose inputs are set.
  void add_call(KernelCall call, InnerTiling inner, size_t step, size_t inputs) {
    call.task.launch = inner.tiling->launch;
    call.task.tiling = inner.tiling.get();
    call.task.input_count = static_cast<uint16_t>(inputs);
    call.task.output_count = 1;
    call.operands[inputs] = result_index(step);
    add_memory(&inner, call.operands + inputs + 1);
    FusedUnit unit;
    unit.result = result_index(step);
    unit.what = call;
    append_unit(std::move(unit), inner.tiling->implementation);
    tiling_->inner.push_back(std::move(inner));
  }

  std::shared_ptr<const Tiling> tile(const TilingContext& inner) const {
    std::vector<DType> types;
    for (int i = 0; i < inner.input_count(); ++i)
      types.push_back(inner.has_input(i) ? inner.dtype(i) : DType::kUndefined);
    try {
      const Kernel* kernel = cpu_kernels().find(inner.node().op, types, inner.output_dtype(0));
      if (!kernel) ctx_.unsupported("no kernel for " + inner.node().op + "; compile with fuse=False");
      std::shared_ptr<const Tiling> tiling = kernel->tiling(inner);
      ctx_.note_threads(inner.threads_used());
      return tiling;
    } catch (const UnsupportedError& e) {
      ctx_.unsupported(e.what());
    } catch (const GraphError& e) {
      fail_tiling(ctx_, e.what());
    }
  }

  // Workspace and packed constants of an inner tiling. Units run one after the other, hence share their workspace.
  void add_memory(InnerTiling* inner, uint32_t* operands) {
    const auto number = static_cast<uint32_t>(1 + inputs_ + steps_ + 2 * tiling_->units.size());
    if (const size_t bytes = inner->tiling->workspace_bytes) {
      operands[0] = number;
      tiling_->places.push_back({Memory::kWorkspace, number, tiling_->workspace_bytes});
      inner_workspace_ = std::max(inner_workspace_, round_up(bytes));
    }
    if (const size_t bytes = inner->tiling->packed_bytes) {
      operands[1] = number + 1;
      inner->packed_offset = tiling_->packed_bytes;
      tiling_->places.push_back({Memory::kPacked, number + 1, inner->packed_offset});
      tiling_->packed_bytes += round_up(bytes);
    }
  }

  void append_unit(FusedUnit unit, const char* text) {
    if (!tiling_->units.empty()) tiling_->text += ", ";
    tiling_->text += text;
    tiling_->units.push_back(std::move(unit));
  }

  static constexpr size_t kUnread = ~size_t{0};

  const TilingContext& ctx_;
  const FusedBody& body_;
  const size_t inputs_, steps_;
  const std::shared_ptr<FusedTiling> tiling_;
  Shape shapes_[kMaxFusedInputs + kMaxFusedSteps];
  std::vector<FoundNorm> norms_;
  FoundAttention attention_;
  FoundConv conv_;
  std::vector<ValueId> inputs_of_[kMaxFusedSteps];
  ElementStep element_[kMaxFusedSteps];
  bool is_element_[kMaxFusedSteps] = {}, is_needless_[kMaxFusedSteps] = {};
  size_t root_[kMaxFusedSteps] = {};
  size_t inner_workspace_ = 0;
};

std::shared_ptr<const Tiling> build_units(const TilingContext& ctx) { return Builder(ctx).build(); }

std::shared_ptr<const Tiling> tile_fused(const TilingContext& ctx) {
  if (auto t = try_lookup(ctx, build_units)) return t;
  return build_units(ctx);
}

}  // namespace
}  // namespace asc::cpu

namespace asc {

void register_fused_kernels(KernelRegistry& registry) {
  registry.add(fused_op().name, kAnyType, cpu::tile_fused);  // its first input may be a host value
}

}  // namespace asc
