// GRU: the input's part of all gates is one matrix product per chunk of steps; each step then adds the state's part.
// Weights are used transposed: (in, 3 hidden), then (hidden, 2 hidden) of the update and reset gates and (hidden,
// hidden) of the candidate; packed once where constant.
#include <algorithm>
#include <cstring>

#include "backends/cpu/half_adaptor.h"
#include "backends/cpu/lstm_cell.h"
#include "backends/cpu/nn.h"
#include "backends/cpu/recurrent.h"
#include "base/hash.h"

namespace asc::cpu {
namespace {

enum Input { kX, kW, kR, kBias, kLengths, kInitialState };

struct GruTiling : TilingOf<GruTiling> {
  int64_t steps = 0, batch = 0, in = 0, hidden = 0;
  int directions = 1;
  bool is_reverse = false;           // of direction 0; direction 1 is always reverse
  bool resets_after_linear = false;  // linear_before_reset
  float clip = 0;                    // bound of what enters activations; 0: none
  Activation gate[2], candidate[2];  // by direction
  int64_t chunk = 1;                 // steps whose input part is computed at once
  bool runs_backwards(int d) const { return d == 1 || is_reverse; }
  int64_t weight_elements() const { return 3 * hidden * (in + hidden); }
};

void transpose_weights(const GruTiling& t, int d, const float* w, const float* r, float* to) {
  const int64_t h = t.hidden;
  w += d * 3 * h * t.in;
  r += d * 3 * h * h;
  transpose(w, 3 * h, t.in, to);
  to += 3 * h * t.in;
  transpose(r, 2 * h, h, to);
  transpose(r + 2 * h * h, h, h, to + 2 * h * h);
}

void pack_weights(const Tiling& tiling, const void* const* inputs, void* packed) {
  const auto& t = static_cast<const GruTiling&>(tiling);
  for (int d = 0; d < t.directions; ++d)
    transpose_weights(t, d, static_cast<const float*>(inputs[kW]), static_cast<const float*>(inputs[kR]),
                      static_cast<float*>(packed) + d * t.weight_elements());
}

// The scratch of one launch, in the workspace.
struct Scratch {
  float *state, *gates, *candidate, *reset_state, *bias, *candidate_bias, *input_part, *rows, *weights;
};

size_t place(const GruTiling& t, bool needs_weights, float* base, Scratch* s) {
  size_t used = 0;
  const auto take = [&](int64_t elements) {
    float* p = base ? base + used : nullptr;
    used += round_up(static_cast<size_t>(elements) * sizeof(float)) / sizeof(float);
    return p;
  };
  s->state = take(t.batch * t.hidden);
  s->gates = take(t.batch * 2 * t.hidden);
  s->candidate = take(t.batch * t.hidden);
  s->reset_state = take(t.batch * t.hidden);
  s->bias = take(3 * t.hidden);
  s->candidate_bias = take(t.hidden);
  s->input_part = take(t.chunk * t.batch * 3 * t.hidden);
  s->rows = take(t.is_reverse || t.directions == 2 ? t.chunk * t.batch * t.in : 0);
  s->weights = take(needs_weights ? t.weight_elements() : 0);
  return used * sizeof(float);
}

template <typename T>
const T* optional(const Task& task, void* const* slots, int i) {
  return task.has_input(slots, i) ? task.input<T>(slots, i) : nullptr;
}

// One direction of one launch.
class GruPass {
 public:
  GruPass(const Task& task, void* const* slots, const GruTiling& t, const Scratch& s, int d)
      : t_(t),
        s_(s),
        d_(d),
        x_(task.input<float>(slots, kX)),
        lengths_(optional<int32_t>(task, slots, kLengths)),
        y_(task.has_output(slots, 0) ? task.output<float>(slots, 0) : nullptr) {
    sum_bias(optional<float>(task, slots, kBias));
    const int64_t n = t.batch * t.hidden;
    if (const float* initial = optional<float>(task, slots, kInitialState))
      std::copy_n(initial + d * n, n, s.state);
    else
      std::fill_n(s.state, n, 0.0f);
  }

  void run(const float* weights) {
    const int64_t h = t_.hidden;
    const float *gate_weights = weights + 3 * h * t_.in, *candidate_weights = gate_weights + 2 * h * h;
    int64_t longest = lengths_ ? 0 : t_.steps;
    for (int64_t b = 0; lengths_ && b < t_.batch; ++b) longest = std::max<int64_t>(longest, lengths_[b]);
    for (int64_t begin = 0; begin < longest; begin += t_.chunk) {
      const int64_t steps = std::min(t_.chunk, longest - begin);
      product_plus(steps * t_.batch, 3 * h, t_.in, rows_of(begin, steps), weights, s_.bias, 0, s_.input_part);
      for (int64_t step = begin; step < begin + steps; ++step)
        run_step(step, s_.input_part + (step - begin) * t_.batch * 3 * h, gate_weights, candidate_weights);
    }
    clear_after_ends();
  }

 private:
  int64_t length(int64_t b) const { return lengths_ ? lengths_[b] : t_.steps; }
  // The time that row b of the batch sees at a step; negative once its sequence has ended.
  int64_t time_of(int64_t step, int64_t b) const {
    if (step >= length(b)) return -1;
    return t_.runs_backwards(d_) ? length(b) - 1 - step : step;
  }

  // The recurrent bias of the candidate stays apart where the reset gate scales it.
  void sum_bias(const float* bias) {
    const int64_t h = t_.hidden;
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

  // The rows of x that steps [begin, begin + steps) see, in their order.
  const float* rows_of(int64_t begin, int64_t steps) {
    if (!t_.runs_backwards(d_)) return x_ + begin * t_.batch * t_.in;
    for (int64_t i = 0; i < steps * t_.batch; ++i) {
      const int64_t b = i % t_.batch, time = time_of(begin + i / t_.batch, b);
      float* row = s_.rows + i * t_.in;
      if (time < 0)
        std::fill_n(row, t_.in, 0.0f);
      else
        std::copy_n(x_ + (time * t_.batch + b) * t_.in, t_.in, row);
    }
    return s_.rows;
  }

  void apply(const Activation& a, float* x, int64_t n) const {
    if (t_.clip > 0) vec_table().clip(x, x, static_cast<size_t>(n), -t_.clip, t_.clip);
    a.apply(a, x, static_cast<size_t>(n));
  }

  void run_step(int64_t step, const float* part, const float* gate_weights, const float* candidate_weights) {
    const VecTable& v = vec_table();
    const int64_t h = t_.hidden, n = t_.batch * h;
    product_plus(t_.batch, 2 * h, h, s_.state, gate_weights, part, 3 * h, s_.gates);
    apply(t_.gate[d_], s_.gates, 2 * n);
    const auto reset = [&](int64_t b) { return s_.gates + b * 2 * h + h; };
    const auto width = static_cast<size_t>(h);
    if (t_.resets_after_linear) {
      product_plus(t_.batch, h, h, s_.state, candidate_weights, s_.candidate_bias, 0, s_.candidate);
      for (int64_t b = 0; b < t_.batch; ++b) {
        float* row = s_.candidate + b * h;
        v.mul_add(reset(b), row, part + b * 3 * h + 2 * h, row, width);
      }
    } else {
      for (int64_t b = 0; b < t_.batch; ++b) v.mul.vv(reset(b), s_.state + b * h, s_.reset_state + b * h, width);
      product_plus(t_.batch, h, h, s_.reset_state, candidate_weights, part + 2 * h, 3 * h, s_.candidate);
    }
    apply(t_.candidate[d_], s_.candidate, n);
    for (int64_t b = 0; b < t_.batch; ++b) update(b, time_of(step, b));
  }

  // state = candidate + update * (state - candidate), unless the sequence has ended.
  void update(int64_t b, int64_t time) {
    if (time < 0) return;
    const VecTable& v = vec_table();
    const auto width = static_cast<size_t>(t_.hidden);
    float *state = s_.state + b * t_.hidden, *candidate = s_.candidate + b * t_.hidden;
    v.sub.vv(state, candidate, state, width);
    v.mul_add(s_.gates + b * 2 * t_.hidden, state, candidate, state, width);
    if (y_) std::copy_n(state, t_.hidden, y_row(time, b));
  }

  float* y_row(int64_t time, int64_t b) const { return y_ + ((time * t_.directions + d_) * t_.batch + b) * t_.hidden; }

  void clear_after_ends() {
    for (int64_t b = 0; y_ && b < t_.batch; ++b)
      for (int64_t time = length(b); time < t_.steps; ++time) std::fill_n(y_row(time, b), t_.hidden, 0.0f);
  }

  const GruTiling& t_;
  const Scratch& s_;
  const int d_;
  const float* x_;
  const int32_t* lengths_;  // null: all steps
  float* y_;                // null: not wanted
};

Status launch_gru(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const GruTiling*>(task.tiling);
  const Status status = check_lengths(t.batch, t.steps, optional<int32_t>(task, slots, kLengths), worker);
  if (status != Status::kOk) return status;
  Scratch s;
  place(t, t.packed_bytes == 0, static_cast<float*>(task.workspace(slots)), &s);
  for (int d = 0; d < t.directions; ++d) {
    const float* weights = s.weights;
    if (t.packed_bytes > 0)
      weights = static_cast<const float*>(task.packed(slots)) + d * t.weight_elements();
    else
      transpose_weights(t, d, task.input<float>(slots, kW), task.input<float>(slots, kR), s.weights);
    GruPass(task, slots, t, s, d).run(weights);
    const int64_t n = t.batch * t.hidden;
    if (task.has_output(slots, 1)) std::copy_n(s.state, n, task.output<float>(slots, 1) + d * n);
  }
  return Status::kOk;
}

std::shared_ptr<const Tiling> tile_gru(const TilingContext& ctx) {
  constexpr const char* kDefaults[] = {"Sigmoid", "Tanh"};
  const Shape &x = ctx.input(kX), &r = ctx.input(kR);
  auto t = create_tiling<GruTiling>(launch_gru, "vector:cells");
  t->steps = x[0], t->batch = x[1], t->in = x[2], t->hidden = r[2];
  const std::string_view direction = ctx.attributes().get_string("direction", "forward");
  t->directions = direction == "bidirectional" ? 2 : 1;
  t->is_reverse = direction == "reverse";
  t->resets_after_linear = ctx.attr("linear_before_reset", 0) != 0;
  t->clip = static_cast<float>(ctx.attributes().get_float("clip", 0.0));
  for (int d = 0; d < t->directions; ++d) {
    Activation activations[2];
    read_activations(ctx, kDefaults, 2, d, t->directions, activations);
    t->gate[d] = activations[0], t->candidate[d] = activations[1];
  }
  // The input part of a chunk stays in the second-level cache.
  constexpr int64_t kChunkElements = int64_t{1} << 17;
  const int64_t step_elements = std::max<int64_t>(t->batch * std::max(3 * t->hidden, t->in), 1);
  t->chunk = std::clamp<int64_t>(kChunkElements / step_elements, 1, std::max<int64_t>(t->steps, 1));
  const bool packs = ctx.is_constant(kW) && ctx.is_constant(kR);
  if (packs) {
    t->packed_bytes = static_cast<size_t>(t->directions * t->weight_elements()) * sizeof(float);
    const uint64_t words[] = {0x677275, static_cast<uint64_t>(t->in), static_cast<uint64_t>(t->hidden),
                              static_cast<uint64_t>(t->directions)};
    t->packed_layout = hash_words(words, 4) | 1;
    t->pack = pack_weights;
  }
  Scratch s;
  t->workspace_bytes = place(*t, !packs, nullptr, &s);
  return t;
}

}  // namespace

void register_gru(KernelRegistry& registry) {
  registry.add("GRU", DType::kFloat32, tile_gru);
  registry.add("GRU", kHalfFloats, tile_half<tile_gru, (1u << kW) | (1u << kR)>);
}

}  // namespace asc::cpu
