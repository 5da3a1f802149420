// GRU: the input's part of all gates is one matrix product per chunk of steps; each step then adds the state's part.
// Weights are the input's (3 hidden), then the state's of the update and reset gates (2 hidden) and of the candidate
// (hidden); packed once where constant. Plain cells, in which the reset gate scales what the state adds to the
// candidate, have one product for all of the state's (3 hidden), and the cell in one pass.
#include "backends/cpu/half_adaptor.h"
#include "backends/cpu/lstm_cell.h"
#include "backends/cpu/nn.h"
#include "backends/cpu/recurrent.h"

namespace asc::cpu {
namespace {

struct GruTiling : TilingOf<GruTiling> {
  Recurrence r;
  StepWeights input, gates, candidates;
  size_t scratch_bytes = 0;                                 // of a direction
  bool resets_after_linear = false;                         // linear_before_reset
  float clip = 0;                                           // bound of what enters activations; 0: none
  bool is_plain = false;                                    // VecTable::gru_cells does it
  Activation gate[2], candidate[2];                         // by direction
  int64_t state_gates() const { return is_plain ? 3 : 2; }  // of `gates`; `candidates` have the others

  const Recurrence& recurrence() const { return r; }
  int64_t weight_elements() const {
    return input.packed_elements() + gates.packed_elements() + candidates.packed_elements();
  }
  void pack_direction(int d, const float* w, const float* recurrent, float* to) const {
    const int64_t h = r.hidden;
    input.pack(w + d * input.elements(), to);
    gates.pack(recurrent + d * 3 * h * h, to + input.packed_elements());
    if (!is_plain)
      candidates.pack(recurrent + (d * 3 + 2) * h * h, to + input.packed_elements() + gates.packed_elements());
  }
};

// The workspace of one launch.
struct Scratch {
  Scratch(const GruTiling& t, bool needs_weights, Cutter& c) {
    const Recurrence& r = t.r;
    state = c.take<float>(r.batch * r.hidden);
    gates = c.take<float>(r.batch * t.state_gates() * r.hidden);
    candidate = c.take<float>(r.batch * r.hidden);
    reset_state = c.take<float>(r.batch * r.hidden);
    bias = c.take<float>(3 * r.hidden);
    candidate_bias = c.take<float>(r.hidden);
    input_part = c.take<float>(r.chunk * r.batch * 3 * r.hidden);
    rows = c.take<float>(r.reorders() ? r.chunk * r.batch * r.in : 0);
    weights = c.take<float>(needs_weights ? t.weight_elements() : 0);
  }
  float *state, *gates, *candidate, *reset_state, *bias, *candidate_bias, *input_part, *rows, *weights;
};

// One direction of one launch.
class GruPass {
 public:
  GruPass(const Task& task, void* const* slots, const GruTiling& t, const Scratch& s, int d, const float* weights)
      : t_(t),
        s_(s),
        d_(d),
        weights_(weights),
        sequences_(t.r, d, task.input<float>(slots, kX), optional_input<int32_t>(task, slots, kLengths), s.rows,
                   task.has_output(slots, 0) ? task.output<float>(slots, 0) : nullptr) {
    sum_bias(optional_input<float>(task, slots, kBias));
    load_state(t.r, d, optional_input<float>(task, slots, kInitialState), s.state);
  }

  void run() {
    const Recurrence& r = t_.r;
    const int64_t longest = sequences_.longest();
    for (int64_t begin = 0; begin < longest; begin += r.chunk) {
      const int64_t steps = std::min(r.chunk, longest - begin);
      t_.input.multiply(steps * r.batch, sequences_.rows_of(begin, steps), weights_, s_.bias, 0, s_.input_part);
      for (int64_t step = begin; step < begin + steps; ++step) {
        const float* part = s_.input_part + (step - begin) * r.batch * 3 * r.hidden;
        t_.is_plain ? run_plain_step(step, part) : run_step(step, part);
      }
    }
    sequences_.clear_after_ends();
  }

 private:
  // The recurrent bias of the candidate stays apart where the reset gate scales it.
  void sum_bias(const float* bias) {
    const int64_t h = t_.r.hidden;
    std::fill_n(s_.bias, 3 * h, 0.0f);
    std::fill_n(s_.candidate_bias, h, 0.0f);
    if (!bias) return;
    bias += d_ * 6 * h;
    for (int64_t i = 0; i < 3 * h; ++i) s_.bias[i] = bias[i] + (i < 2 * h ? bias[3 * h + i] : 0.0f);
    for (int64_t i = 0; i < h; ++i) {
      if (t_.resets_after_linear)
        s_.candidate_bias[i] = bias[5 * h + i];
      else
        s_.bias[2 * h + i] += bias[5 * h + i];
    }
  }

  void apply(const Activation& a, float* x, int64_t n) const {
    if (t_.clip > 0) vec_table().clip(x, x, static_cast<size_t>(n), -t_.clip, t_.clip);
    a.apply(a, x, static_cast<size_t>(n));
  }

  void run_plain_step(int64_t step, const float* part) {
    const int64_t h = t_.r.hidden;
    t_.gates.multiply(t_.r.batch, s_.state, weights_ + t_.input.packed_elements(), nullptr, 0, s_.gates, step % 2 != 0);
    for (int64_t b = 0; b < t_.r.batch; ++b) {
      const int64_t time = sequences_.time_of(step, b);
      if (time < 0) continue;
      float* state = s_.state + b * h;
      vec_table().gru_cells(s_.gates + b * 3 * h, part + b * 3 * h, s_.candidate_bias, state, static_cast<size_t>(h));
      sequences_.write(time, b, state);
    }
  }

  void run_step(int64_t step, const float* part) {
    const VecTable& v = vec_table();
    const int64_t h = t_.r.hidden, batch = t_.r.batch, n = batch * h;
    const float* gate_weights = weights_ + t_.input.packed_elements();
    const float* candidate_weights = gate_weights + t_.gates.packed_elements();
    t_.gates.multiply(batch, s_.state, gate_weights, part, 3 * h, s_.gates);
    apply(t_.gate[d_], s_.gates, 2 * n);
    const auto reset = [&](int64_t b) { return s_.gates + b * 2 * h + h; };
    const auto width = static_cast<size_t>(h);
    if (t_.resets_after_linear) {
      t_.candidates.multiply(batch, s_.state, candidate_weights, s_.candidate_bias, 0, s_.candidate);
      for (int64_t b = 0; b < batch; ++b) {
        float* row = s_.candidate + b * h;
        v.mul_add(reset(b), row, part + b * 3 * h + 2 * h, row, width);
      }
    } else {
      for (int64_t b = 0; b < batch; ++b) v.mul.vv(reset(b), s_.state + b * h, s_.reset_state + b * h, width);
      t_.candidates.multiply(batch, s_.reset_state, candidate_weights, part + 2 * h, 3 * h, s_.candidate);
    }
    apply(t_.candidate[d_], s_.candidate, n);
    for (int64_t b = 0; b < batch; ++b) update(b, sequences_.time_of(step, b));
  }

  // state = candidate + update * (state - candidate), unless the sequence has ended.
  void update(int64_t b, int64_t time) {
    if (time < 0) return;
    const VecTable& v = vec_table();
    const auto width = static_cast<size_t>(t_.r.hidden);
    float *state = s_.state + b * t_.r.hidden, *candidate = s_.candidate + b * t_.r.hidden;
    v.sub.vv(state, candidate, state, width);
    v.mul_add(s_.gates + b * 2 * t_.r.hidden, state, candidate, state, width);
    sequences_.write(time, b, state);
  }

  const GruTiling& t_;
  const Scratch& s_;
  const int d_;
  const float* weights_;
  const Sequences<float> sequences_;
};

Status launch_gru(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const GruTiling*>(task.tiling);
  const Status status = check_lengths(t.r, optional_input<int32_t>(task, slots, kLengths), worker);
  if (status != Status::kOk) return status;
  auto* workspace = static_cast<char*>(task.workspace(slots));
  for_each_direction(t.r, [&](int d, int64_t number) {
    Cutter cutter(workspace + static_cast<size_t>(number) * t.scratch_bytes);
    const Scratch s(t, t.packed_bytes == 0, cutter);
    GruPass(task, slots, t, s, d, weights_of(t, task, slots, d, s.weights)).run();
    if (task.has_output(slots, 1)) store_state(t.r, d, s.state, task.output<float>(slots, 1));
  });
  return Status::kOk;
}

bool has_plain_cells(const GruTiling& t) {
  for (int d = 0; d < t.r.directions; ++d)
    if (!is_sigmoid(t.gate[d]) || !is_tanh(t.candidate[d])) return false;
  return t.resets_after_linear && !(t.clip > 0);
}

std::shared_ptr<const Tiling> tile_gru(const TilingContext& ctx) {
  constexpr const char* kDefaults[] = {"Sigmoid", "Tanh"};
  const int64_t h = ctx.input(kR)[2];
  auto t = create_tiling<GruTiling>(launch_gru, "vector:cells");
  t->r = read_recurrence(ctx, h, 3);
  const Recurrence& r = t->r;
  t->input = StepWeights(r.chunk * r.batch, 3 * h, r.in);
  t->resets_after_linear = ctx.attr("linear_before_reset", 0) != 0;
  t->clip = static_cast<float>(ctx.attributes().get_float("clip", 0.0));
  for (int d = 0; d < r.directions; ++d) {
    Activation activations[2];
    read_activations(ctx, kDefaults, 2, d, r.directions, activations);
    t->gate[d] = activations[0], t->candidate[d] = activations[1];
  }
  t->is_plain = has_plain_cells(*t);
  t->gates = StepWeights(r.batch, t->state_gates() * h, h);
  if (!t->is_plain) t->candidates = StepWeights(r.batch, h, h);
  const bool packs = ctx.is_constant(kW) && ctx.is_constant(kR);
  if (packs)
    pack_weights_once(*t, r, 0x677275, t->weight_elements(),
                      t->input.layout() << 2 | t->gates.layout() << 1 | t->is_plain, pack_directions<GruTiling>);
  size_workspace<Scratch>(*t, !packs);
  return t;
}

}  // namespace

void register_gru(KernelRegistry& registry) {
  registry.add("GRU", DType::kFloat32, tile_gru);
  registry.add("GRU", kHalfFloats, tile_half<tile_gru, (1u << kW) | (1u << kR)>);
}

}  // namespace asc::cpu
