// LSTM on float32 weights, packed once where constant.
#include "backends/cpu/half_adaptor.h"
#include "backends/cpu/lstm_pass.h"
#include "backends/cpu/nn.h"

namespace asc::cpu {
namespace {

struct LstmTiling : TilingOf<LstmTiling> {
  LstmPlan plan;
  StepWeights input, state;
  size_t scratch_bytes = 0;  // of a direction
  int64_t weight_elements() const { return input.packed_elements() + state.packed_elements(); }
};

// Both weights of direction d.
void pack_direction(const LstmTiling& t, int d, const float* w, const float* r, float* to) {
  t.input.pack(w + d * t.input.elements(), to);
  t.state.pack(r + d * t.state.elements(), to + t.input.packed_elements());
}

void pack_weights(const Tiling& tiling, const void* const* inputs, void* packed) {
  const auto& t = static_cast<const LstmTiling&>(tiling);
  for (int d = 0; d < t.plan.r.directions; ++d)
    pack_direction(t, d, static_cast<const float*>(inputs[kLstmW]), static_cast<const float*>(inputs[kLstmR]),
                   static_cast<float*>(packed) + d * t.weight_elements());
}

struct FloatWeights {
  const LstmTiling& t;
  const float* packed;

  void input(const float* rows, int64_t m, const float* bias, float* sums) const {
    t.input.multiply(m, rows, packed, bias, 0, sums);
  }
  void state(int64_t step, const float* state, const float* part, float* sums) const {
    t.state.multiply(t.plan.r.batch, state, packed + t.input.packed_elements(), part, t.plan.gates(), sums,
                     step % 2 != 0);
  }
};

Status launch_lstm(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const LstmTiling*>(task.tiling);
  const Status status = check_lengths(t.plan.r, optional_input<int32_t>(task, slots, kLstmLengths), worker);
  if (status != Status::kOk) return status;
  auto* workspace = static_cast<char*>(task.workspace(slots));
  for_each_direction(t.plan.r, [&](int d, int64_t number) {
    Cutter cutter(workspace + static_cast<size_t>(number) * t.scratch_bytes);
    const LstmScratch<float> scratch(t.plan, cutter);
    auto* own_weights = cutter.take<float>(t.packed_bytes ? 0 : t.weight_elements());
    const float* weights = own_weights;
    if (t.packed_bytes)
      weights = static_cast<const float*>(task.packed(slots)) + d * t.weight_elements();
    else
      pack_direction(t, d, task.input<float>(slots, kLstmW), task.input<float>(slots, kLstmR), own_weights);
    run_lstm(task, slots, t.plan, scratch, d, task.input<float>(slots, kLstmX), FloatWeights{t, weights});
  });
  return Status::kOk;
}

std::shared_ptr<const Tiling> tile_lstm(const TilingContext& ctx) {
  auto t = create_tiling<LstmTiling>(launch_lstm, "vector:cells");
  t->plan = read_lstm(ctx, ctx.input(kLstmR)[2]);
  const Recurrence& r = t->plan.r;
  t->input = StepWeights(r.chunk * r.batch, t->plan.gates(), r.in);
  t->state = StepWeights(r.batch, t->plan.gates(), r.hidden);
  const bool packs = ctx.is_constant(kLstmW) && ctx.is_constant(kLstmR);
  if (packs)
    pack_weights_once(*t, r, 0x6C73746D, t->weight_elements(), t->input.layout() << 1 | t->state.layout(),
                      pack_weights);
  Cutter cutter(nullptr);
  const LstmScratch<float> scratch(t->plan, cutter);
  cutter.take<float>(packs ? 0 : t->weight_elements());
  t->scratch_bytes = cutter.used();
  t->workspace_bytes = static_cast<size_t>(r.scratches()) * t->scratch_bytes;
  return t;
}

}  // namespace

LstmPlan read_lstm(const TilingContext& ctx, int64_t hidden) {
  LstmPlan p;
  p.r = read_recurrence(ctx, hidden, 4);
  for (int d = 0; d < p.r.directions; ++d) p.cells[d] = make_lstm_cell(ctx, p.r.hidden, d, p.r.directions);
  return p;
}

void sum_lstm_bias(const LstmPlan& p, int d, const float* from, float* bias) {
  const int64_t n = p.gates();
  if (from)
    vec_table().add.vv(from + d * 2 * n, from + d * 2 * n + n, bias, static_cast<size_t>(n));
  else
    std::fill_n(bias, n, 0.0f);
}

void register_lstm(KernelRegistry& registry) {
  registry.add("LSTM", DType::kFloat32, tile_lstm);
  registry.add("LSTM", kHalfFloats, tile_half<tile_lstm, (1u << kLstmW) | (1u << kLstmR)>);
}

}  // namespace asc::cpu
