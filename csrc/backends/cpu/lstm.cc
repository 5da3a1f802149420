// LSTM: the input's part of all gates is one matrix product per chunk of steps; each step then adds the state's part
// and runs the cell. Weights are used transposed, (in, 4 hidden): packed once where constant.
#include <algorithm>
#include <cstring>

#include "backends/cpu/half_adaptor.h"
#include "backends/cpu/lstm_cell.h"
#include "backends/cpu/nn.h"
#include "backends/cpu/quantize.h"
#include "backends/cpu/recurrent.h"
#include "base/hash.h"

namespace asc::cpu {
namespace {

enum Input { kX, kW, kR, kBias, kLengths, kInitialState, kInitialCell, kPeephole };

struct LstmTiling : TilingOf<LstmTiling> {
  int64_t steps = 0, batch = 0, in = 0, hidden = 0;
  int directions = 1;
  bool is_reverse = false;  // of direction 0; direction 1 is always reverse
  LstmCell cells[2];
  bool rounds_state = false;  // to 8 bits, before the product: what models quantised so were tuned for
  int64_t chunk = 1;          // steps whose input part is computed at once
  int64_t gates() const { return 4 * hidden; }
  bool runs_backwards(int d) const { return d == 1 || is_reverse; }
};

// Both weights of direction d: w (in, 4 hidden), then r (hidden, 4 hidden).
void transpose_weights(const LstmTiling& t, int d, const float* w, const float* r, float* to) {
  transpose(w + d * t.gates() * t.in, t.gates(), t.in, to);
  transpose(r + d * t.gates() * t.hidden, t.gates(), t.hidden, to + t.in * t.gates());
}

int64_t weight_elements(const LstmTiling& t) { return (t.in + t.hidden) * t.gates(); }

void pack_weights(const Tiling& tiling, const void* const* inputs, void* packed) {
  const auto& t = static_cast<const LstmTiling&>(tiling);
  for (int d = 0; d < t.directions; ++d)
    transpose_weights(t, d, static_cast<const float*>(inputs[kW]), static_cast<const float*>(inputs[kR]),
                      static_cast<float*>(packed) + d * weight_elements(t));
}

// The scratch of one launch, in the workspace.
struct Scratch {
  float *state, *cell, *gates, *bias, *input_part, *rows, *weights, *rounded;
};

size_t place(const LstmTiling& t, bool needs_weights, float* base, Scratch* s) {
  size_t used = 0;
  const auto take = [&](int64_t elements) {
    float* p = base ? base + used : nullptr;
    used += round_up(static_cast<size_t>(elements) * sizeof(float)) / sizeof(float);
    return p;
  };
  s->state = take(t.batch * t.hidden);
  s->cell = take(t.batch * t.hidden);
  s->gates = take(t.batch * t.gates());
  s->bias = take(t.gates());
  s->input_part = take(t.chunk * t.batch * t.gates());
  s->rows = take(t.is_reverse || t.directions == 2 ? t.chunk * t.batch * t.in : 0);
  s->weights = take(needs_weights ? weight_elements(t) : 0);
  s->rounded = take(t.rounds_state ? t.batch * t.hidden : 0);
  return used * sizeof(float);
}

// One direction of one launch.
class LstmPass {
 public:
  LstmPass(const Task& task, void* const* slots, const LstmTiling& t, const Scratch& s, int d)
      : t_(t),
        s_(s),
        d_(d),
        x_(task.input<float>(slots, kX)),
        lengths_(optional<int32_t>(task, slots, kLengths)),
        peephole_(optional<float>(task, slots, kPeephole)),
        y_(task.has_output(slots, 0) ? task.output<float>(slots, 0) : nullptr) {
    if (peephole_) peephole_ += d * 3 * t.hidden;
    sum_bias(optional<float>(task, slots, kBias));
    load(optional<float>(task, slots, kInitialState), s.state);
    load(optional<float>(task, slots, kInitialCell), s.cell);
  }

  template <typename T>
  static const T* optional(const Task& task, void* const* slots, int i) {
    return task.has_input(slots, i) ? task.input<T>(slots, i) : nullptr;
  }

  void run(const float* weights) {
    int64_t longest = lengths_ ? 0 : t_.steps;
    for (int64_t b = 0; lengths_ && b < t_.batch; ++b) longest = std::max<int64_t>(longest, lengths_[b]);
    for (int64_t begin = 0; begin < longest; begin += t_.chunk) {
      const int64_t steps = std::min(t_.chunk, longest - begin);
      product_plus(steps * t_.batch, t_.gates(), t_.in, rows_of(begin, steps), weights, s_.bias, 0, s_.input_part);
      for (int64_t step = begin; step < begin + steps; ++step) {
        const float* part = s_.input_part + (step - begin) * t_.batch * t_.gates();
        if (t_.rounds_state) round_to_bytes(s_.state, t_.batch * t_.hidden, s_.rounded);
        const float* state = t_.rounds_state ? s_.rounded : s_.state;
        product_plus(t_.batch, t_.gates(), t_.hidden, state, weights + t_.in * t_.gates(), part, t_.gates(), s_.gates);
        run_cells(step);
      }
    }
    clear_after_ends();
  }

  // Writes the last state or cell of this direction.
  void store(const float* from, float* to) const {
    std::memcpy(to + d_ * t_.batch * t_.hidden, from, static_cast<size_t>(t_.batch * t_.hidden) * sizeof(float));
  }

 private:
  int64_t length(int64_t b) const { return lengths_ ? lengths_[b] : t_.steps; }
  // The time that row b of the batch sees at a step; negative once its sequence has ended.
  int64_t time_of(int64_t step, int64_t b) const {
    if (step >= length(b)) return -1;
    return t_.runs_backwards(d_) ? length(b) - 1 - step : step;
  }

  void sum_bias(const float* bias) {
    const int64_t n = t_.gates();
    for (int64_t i = 0; i < n; ++i) s_.bias[i] = bias ? bias[d_ * 2 * n + i] + bias[d_ * 2 * n + n + i] : 0.0f;
  }

  void load(const float* initial, float* to) {
    const int64_t n = t_.batch * t_.hidden;
    if (initial)
      std::copy(initial + d_ * n, initial + (d_ + 1) * n, to);
    else
      std::fill(to, to + n, 0.0f);
  }

  // The rows of x that steps [begin, begin + steps) see, in their order.
  const float* rows_of(int64_t begin, int64_t steps) {
    if (!t_.runs_backwards(d_)) return x_ + begin * t_.batch * t_.in;
    for (int64_t i = 0; i < steps * t_.batch; ++i) {
      const int64_t b = i % t_.batch, time = time_of(begin + i / t_.batch, b);
      float* row = s_.rows + i * t_.in;
      if (time < 0)
        std::fill(row, row + t_.in, 0.0f);
      else
        std::memcpy(row, x_ + (time * t_.batch + b) * t_.in, static_cast<size_t>(t_.in) * sizeof(float));
    }
    return s_.rows;
  }

  float* y_row(int64_t time, int64_t b) const { return y_ + ((time * t_.directions + d_) * t_.batch + b) * t_.hidden; }

  void run_cells(int64_t step) {
    for (int64_t b = 0; b < t_.batch; ++b) {
      const int64_t time = time_of(step, b);
      if (time < 0) continue;
      float* state = s_.state + b * t_.hidden;
      step_lstm(t_.cells[d_], s_.gates + b * t_.gates(), peephole_, s_.cell + b * t_.hidden, state);
      if (y_) std::memcpy(y_row(time, b), state, static_cast<size_t>(t_.hidden) * sizeof(float));
    }
  }

  void clear_after_ends() {
    for (int64_t b = 0; y_ && b < t_.batch; ++b)
      for (int64_t time = length(b); time < t_.steps; ++time) std::fill_n(y_row(time, b), t_.hidden, 0.0f);
  }

  const LstmTiling& t_;
  const Scratch& s_;
  const int d_;
  const float* x_;
  const int32_t* lengths_;  // null: all steps
  const float* peephole_;   // null: none
  float* y_;                // null: not wanted
};

Status launch_lstm(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const LstmTiling*>(task.tiling);
  const Status status = check_lengths(t.batch, t.steps, LstmPass::optional<int32_t>(task, slots, kLengths), worker);
  if (status != Status::kOk) return status;
  Scratch s;
  place(t, t.packed_bytes == 0, static_cast<float*>(task.workspace(slots)), &s);
  for (int d = 0; d < t.directions; ++d) {
    const float* weights = s.weights;
    if (t.packed_bytes > 0)
      weights = static_cast<const float*>(task.packed(slots)) + d * weight_elements(t);
    else
      transpose_weights(t, d, task.input<float>(slots, kW), task.input<float>(slots, kR), s.weights);
    LstmPass pass(task, slots, t, s, d);
    pass.run(weights);
    if (task.has_output(slots, 1)) pass.store(s.state, task.output<float>(slots, 1));
    if (task.has_output(slots, 2)) pass.store(s.cell, task.output<float>(slots, 2));
  }
  return Status::kOk;
}

std::shared_ptr<const Tiling> tile_lstm(const TilingContext& ctx) {
  const Shape &x = ctx.input(kX), &r = ctx.input(kR);
  auto t = create_tiling<LstmTiling>(launch_lstm, "vector:cells");
  t->steps = x[0], t->batch = x[1], t->in = x[2], t->hidden = r[2];
  const std::string_view direction = ctx.attributes().get_string("direction", "forward");
  t->directions = direction == "bidirectional" ? 2 : 1;
  t->is_reverse = direction == "reverse";
  for (int d = 0; d < t->directions; ++d) t->cells[d] = make_lstm_cell(ctx, t->hidden, d, t->directions);
  // The input part of a chunk stays in the second-level cache.
  constexpr int64_t kChunkElements = int64_t{1} << 17;
  const int64_t step_elements = std::max<int64_t>(t->batch * std::max(t->gates(), t->in), 1);
  t->chunk = std::clamp<int64_t>(kChunkElements / step_elements, 1, std::max<int64_t>(t->steps, 1));
  t->rounds_state = ctx.attr("rounds_state", 0) != 0;
  const bool packs = ctx.is_constant(kW) && ctx.is_constant(kR);
  if (packs) {
    t->packed_bytes = static_cast<size_t>(t->directions * weight_elements(*t)) * sizeof(float);
    const uint64_t words[] = {0x6C73746D, static_cast<uint64_t>(t->in), static_cast<uint64_t>(t->hidden),
                              static_cast<uint64_t>(t->directions)};
    t->packed_layout = hash_words(words, 4) | 1;
    t->pack = pack_weights;
  }
  Scratch s;
  t->workspace_bytes = place(*t, !packs, nullptr, &s);
  return t;
}

}  // namespace

void register_lstm(KernelRegistry& registry) {
  registry.add("LSTM", DType::kFloat32, tile_lstm);
  registry.add("LSTM", kHalfFloats, tile_half<tile_lstm, (1u << kW) | (1u << kR)>);
}

}  // namespace asc::cpu
