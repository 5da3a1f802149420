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

  const Recurrence& recurrence() const { return plan.r; }
  int64_t weight_elements() const { return input.packed_elements() + state.packed_elements(); }
  void pack_direction(int d, const float* w, const float* recurrent, float* to) const {
    input.pack(w + d * input.elements(), to);
    state.pack(recurrent + d * state.elements(), to + input.packed_elements());
  }
};

// The workspace of a direction.
struct Scratch {
  Scratch(const LstmTiling& t, bool needs_weights, Cutter& c)
      : pass(t.plan, c),
        bias(c.take<float>(t.plan.gates())),
        weights(c.take<float>(needs_weights ? t.weight_elements() : 0)) {}
  LstmScratch<float> pass;
  float *bias, *weights;
};

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
  const Status status = check_lengths(t.plan.r, optional_input<int32_t>(task, slots, kLengths), worker);
  if (status != Status::kOk) return status;
  auto* workspace = static_cast<char*>(task.workspace(slots));
  for_each_direction(t.plan.r, [&](int d, int64_t number) {
    Cutter cutter(workspace + static_cast<size_t>(number) * t.scratch_bytes);
    const Scratch s(t, t.packed_bytes == 0, cutter);
    const FloatWeights weights{t, weights_of(t, task, slots, d, s.weights)};
    sum_lstm_bias(t.plan, d, optional_input<float>(task, slots, kBias), s.bias);
    LstmPass<float>(task, slots, t.plan, s.pass, d, task.input<float>(slots, kX), s.bias).run(weights);
  });
  return Status::kOk;
}

std::shared_ptr<const Tiling> tile_lstm(const TilingContext& ctx) {
  auto t = create_tiling<LstmTiling>(launch_lstm, "vector:cells");
  t->plan = read_lstm(ctx, ctx.input(kR)[2]);
  const Recurrence& r = t->plan.r;
  t->input = StepWeights(r.chunk * r.batch, t->plan.gates(), r.in);
  t->state = StepWeights(r.batch, t->plan.gates(), r.hidden);
  const bool packs = ctx.is_constant(kW) && ctx.is_constant(kR);
  if (packs)
    pack_weights_once(*t, r, 0x6C73746D, t->weight_elements(), t->input.layout() << 1 | t->state.layout(),
                      pack_directions<LstmTiling>);
  size_workspace<Scratch>(*t, !packs);
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
  if (!from) return void(std::fill_n(bias, n, 0.0f));
  const float* own = from + d * 2 * n;
  float* to = bias;
  for (int64_t unit = 0; unit < p.r.hidden; unit += p.side())
    for (int64_t gate = unit; gate < n; gate += p.r.hidden)
      for (int64_t i = gate; i < gate + p.side(); ++i) *to++ = own[i] + own[n + i];
}

void register_lstm(KernelRegistry& registry) {
  registry.add("LSTM", DType::kFloat32, tile_lstm);
  registry.add("LSTM", kHalfFloats, tile_half<tile_lstm, (1u << kW) | (1u << kR)>);
}

}  // namespace asc::cpu
