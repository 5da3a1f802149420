// LSTM, one direction: the input's part of all gates is one matrix product per chunk of steps; each step then adds the
// state's part and runs the cell.
#pragma once

#include "backends/cpu/lstm_cell.h"
#include "backends/cpu/recurrent.h"

namespace asc::cpu {

// Operands that LSTM kernels have besides.
enum LstmInput { kInitialCell = kInitialState + 1, kPeephole };

struct LstmPlan {
  Recurrence r;
  LstmCell cells[2];  // by direction
  int parts = 1;      // chunks whose input part is kept: with two, one is made while steps use the other
  int64_t gates() const { return 4 * r.hidden; }
  int64_t side() const { return cells[0].side; }
  // Where the gates lie that ONNX has at `gate`.
  int64_t place_of(int64_t gate) const {
    const int64_t kind = gate / r.hidden, unit = gate % r.hidden;
    return unit / side() * 4 * side() + kind * side() + unit % side();
  }
};

// Throws as read_activations does.
LstmPlan read_lstm(const TilingContext& ctx, int64_t hidden);

// The workspace of a pass; X: elements of the input.
template <typename X>
struct LstmScratch {
  LstmScratch(const LstmPlan& p, Cutter& c)
      : state(c.take<float>(p.r.batch * p.r.hidden)),
        cell(c.take<float>(p.r.batch * p.r.hidden)),
        gates(c.take<float>(p.r.batch * p.gates())),
        input_part(c.take<float>(p.parts * p.r.chunk * p.r.batch * p.gates())),
        rows(c.take<X>(p.r.reorders() ? p.r.chunk * p.r.batch * p.r.in : 0)) {}
  float *state, *cell, *gates, *input_part;
  X* rows;
};

// bias = the sums of both biases of direction d (`from`, of all directions; null for none), as the gates lie.
void sum_lstm_bias(const LstmPlan& p, int d, const float* from, float* bias);

// One direction of a launch; `bias`: its sums. Weights have input(rows, m, bias, sums), for m rows of X, and
// state(step, state, part, sums), for the rows of the batch.
template <typename X>
class LstmPass {
 public:
  LstmPass(const Task& task, void* const* slots, const LstmPlan& p, const LstmScratch<X>& s, int d, const X* x,
           const float* bias)
      : task_(task),
        slots_(slots),
        p_(p),
        s_(s),
        d_(d),
        bias_(bias),
        sequences_(p.r, d, x, optional_input<int32_t>(task, slots, kLengths), s.rows,
                   task.has_output(slots, 0) ? task.output<float>(slots, 0) : nullptr) {
    load_state(p.r, d, optional_input<float>(task, slots, kInitialState), s.state);
    load_state(p.r, d, optional_input<float>(task, slots, kInitialCell), s.cell);
  }

  template <typename Weights>
  void run(const Weights& weights) const {
    for (int64_t begin = 0; begin < longest(); begin += p_.r.chunk) {
      with_input(begin, [&](auto... operands) { weights.input(operands...); });
      run_steps(begin, weights);
    }
    end();
  }

  // The parts of a run. Chunks begin at multiples of the chunk's steps, below longest().
  int64_t longest() const { return sequences_.longest(); }
  // Calls f(rows, m, bias, sums) for the input's part of a chunk.
  template <typename F>
  void with_input(int64_t begin, F f) const {
    const int64_t steps = end_of(begin) - begin;
    f(sequences_.rows_of(begin, steps), steps * p_.r.batch, bias_, input_part(begin));
  }
  template <typename Weights>
  void run_steps(int64_t begin, const Weights& weights) const {
    const Recurrence& r = p_.r;
    const float* peephole = optional_input<float>(task_, slots_, kPeephole);
    if (peephole) peephole += d_ * 3 * r.hidden;
    for (int64_t step = begin; step < end_of(begin); ++step) {
      weights.state(step, s_.state, input_part(begin) + (step - begin) * r.batch * p_.gates(), s_.gates);
      for (int64_t b = 0; b < r.batch; ++b) {
        const int64_t time = sequences_.time_of(step, b);
        if (time < 0) continue;
        float* state = s_.state + b * r.hidden;
        step_lstm(p_.cells[d_], s_.gates + b * p_.gates(), peephole, s_.cell + b * r.hidden, state);
        sequences_.write(time, b, state);
      }
    }
  }
  // Steps of a single sequence by f(step, part, cell, state, next state), which updates the cell and writes the last.
  template <typename F>
  void run_steps_by(int64_t begin, F f) const {
    const float* state = s_.state;
    for (int64_t step = begin; step < end_of(begin); ++step) {
      float* next = sequences_.has_y() ? sequences_.y_row(sequences_.time_of(step, 0), 0) : s_.state;
      f(step, input_part(begin) + (step - begin) * p_.gates(), s_.cell, state, next);
      state = next;
    }
    if (state != s_.state) std::copy_n(state, p_.r.hidden, s_.state);
  }
  void end() const {
    sequences_.clear_after_ends();
    if (task_.has_output(slots_, 1)) store_state(p_.r, d_, s_.state, task_.output<float>(slots_, 1));
    if (task_.has_output(slots_, 2)) store_state(p_.r, d_, s_.cell, task_.output<float>(slots_, 2));
  }

 private:
  int64_t end_of(int64_t begin) const { return std::min(begin + p_.r.chunk, longest()); }
  float* input_part(int64_t begin) const {
    return s_.input_part + begin / p_.r.chunk % p_.parts * p_.r.chunk * p_.r.batch * p_.gates();
  }

  const Task& task_;
  void* const* const slots_;
  const LstmPlan& p_;
  const LstmScratch<X>& s_;
  const int d_;
  const float* const bias_;
  const Sequences<X> sequences_;
};

}  // namespace asc::cpu
