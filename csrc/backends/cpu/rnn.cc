// RNN: state = f(x·W' + state·R' + bias): the input's part is one matrix product per chunk of steps.
#include "backends/cpu/half_adaptor.h"
#include "backends/cpu/lstm_cell.h"
#include "backends/cpu/nn.h"
#include "backends/cpu/recurrent.h"

namespace asc::cpu {
namespace {

struct RnnTiling : TilingOf<RnnTiling> {
  Recurrence r;
  StepWeights input, state;
  size_t scratch_bytes = 0;  // of a direction
  float clip = 0;            // bound of what enters activations; 0: none
  Activation activation[2];

  const Recurrence& recurrence() const { return r; }
  int64_t weight_elements() const { return input.packed_elements() + state.packed_elements(); }
  void pack_direction(int d, const float* w, const float* recurrent, float* to) const {
    input.pack(w + d * input.elements(), to);
    state.pack(recurrent + d * state.elements(), to + input.packed_elements());
  }
};

// The workspace of one launch.
struct Scratch {
  Scratch(const RnnTiling& t, bool needs_weights, Cutter& c) {
    const Recurrence& r = t.r;
    state = c.take<float>(r.batch * r.hidden);
    next = c.take<float>(r.batch * r.hidden);
    bias = c.take<float>(r.hidden);
    input_part = c.take<float>(r.chunk * r.batch * r.hidden);
    rows = c.take<float>(r.reorders() ? r.chunk * r.batch * r.in : 0);
    weights = c.take<float>(needs_weights ? t.weight_elements() : 0);
  }
  float *state, *next, *bias, *input_part, *rows, *weights;
};

void run_direction(const Task& task, void* const* slots, const RnnTiling& t, int d, const Scratch& s,
                   const float* weights) {
  const Recurrence& r = t.r;
  const int64_t h = r.hidden;
  const float* bias = optional_input<float>(task, slots, kBias);
  for (int64_t i = 0; i < h; ++i) s.bias[i] = bias ? bias[d * 2 * h + i] + bias[d * 2 * h + h + i] : 0.0f;
  load_state(r, d, optional_input<float>(task, slots, kInitialState), s.state);
  const Sequences<float> sequences(r, d, task.input<float>(slots, kX), optional_input<int32_t>(task, slots, kLengths),
                                   s.rows, task.has_output(slots, 0) ? task.output<float>(slots, 0) : nullptr);
  const int64_t longest = sequences.longest();
  for (int64_t begin = 0; begin < longest; begin += r.chunk) {
    const int64_t steps = std::min(r.chunk, longest - begin);
    t.input.multiply(steps * r.batch, sequences.rows_of(begin, steps), weights, s.bias, 0, s.input_part);
    for (int64_t step = begin; step < begin + steps; ++step) {
      const float* part = s.input_part + (step - begin) * r.batch * h;
      t.state.multiply(r.batch, s.state, weights + t.input.packed_elements(), part, h, s.next);
      for (int64_t b = 0; b < r.batch; ++b) {
        const int64_t time = sequences.time_of(step, b);
        if (time < 0) continue;
        float* state = s.state + b * h;
        std::copy_n(s.next + b * h, h, state);
        if (t.clip > 0) vec_table().clip(state, state, static_cast<size_t>(h), -t.clip, t.clip);
        t.activation[d].apply(t.activation[d], state, static_cast<size_t>(h));
        sequences.write(time, b, state);
      }
    }
  }
  sequences.clear_after_ends();
  if (task.has_output(slots, 1)) store_state(r, d, s.state, task.output<float>(slots, 1));
}

Status launch_rnn(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const RnnTiling*>(task.tiling);
  const Status status = check_lengths(t.r, optional_input<int32_t>(task, slots, kLengths), worker);
  if (status != Status::kOk) return status;
  auto* workspace = static_cast<char*>(task.workspace(slots));
  for_each_direction(t.r, [&](int d, int64_t number) {
    Cutter cutter(workspace + static_cast<size_t>(number) * t.scratch_bytes);
    const Scratch s(t, t.packed_bytes == 0, cutter);
    run_direction(task, slots, t, d, s, weights_of(t, task, slots, d, s.weights));
  });
  return Status::kOk;
}

std::shared_ptr<const Tiling> tile_rnn(const TilingContext& ctx) {
  constexpr const char* kDefaults[] = {"Tanh"};
  const int64_t h = ctx.input(kR)[2];
  auto t = create_tiling<RnnTiling>(launch_rnn, "vector:cells");
  t->r = read_recurrence(ctx, h, 1);
  const Recurrence& r = t->r;
  t->input = StepWeights(r.chunk * r.batch, h, r.in);
  t->state = StepWeights(r.batch, h, h);
  t->clip = static_cast<float>(ctx.attributes().get_float("clip", 0.0));
  for (int d = 0; d < r.directions; ++d) read_activations(ctx, kDefaults, 1, d, r.directions, &t->activation[d]);
  const bool packs = ctx.is_constant(kW) && ctx.is_constant(kR);
  if (packs)
    pack_weights_once(*t, r, 0x726E6E, t->weight_elements(), t->input.layout() << 1 | t->state.layout(),
                      pack_directions<RnnTiling>);
  size_workspace<Scratch>(*t, !packs);
  return t;
}

}  // namespace

void register_rnn(KernelRegistry& registry) {
  registry.add("RNN", DType::kFloat32, tile_rnn);
  registry.add("RNN", kHalfFloats, tile_half<tile_rnn, (1u << kW) | (1u << kR)>);
}

}  // namespace asc::cpu
