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
  int64_t gates() const { return 4 * r.hidden; }
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
        bias(c.take<float>(p.gates())),
        input_part(c.take<float>(p.r.chunk * p.r.batch * p.gates())),
        rows(c.take<X>(p.r.reorders() ? p.r.chunk * p.r.batch * p.r.in : 0)) {}
  float *state, *cell, *gates, *bias, *input_part;
  X* rows;
};

// bias = the sums of both biases of direction d (`from`: null for none).
void sum_lstm_bias(const LstmPlan& p, int d, const float* from, float* bias);

// One direction of a launch. Weights have input(rows, m, bias, sums), for m rows of X, and state(step, state, part,
// sums), for the rows of the batch.
template <typename X>
class LstmPass {
 public:
  LstmPass(const Task& task, void* const* slots, const LstmPlan& p, const LstmScratch<X>& s, int d, const X* x)
      : task_(task),
        slots_(slots),
        p_(p),
        s_(s),
        d_(d),
        sequences_(p.r, d, x, optional_input<int32_t>(task, slots, kLengths), s.rows,
                   task.has_output(slots, 0) ? task.output<float>(slots, 0) : nullptr) {
    sum_lstm_bias(p, d, optional_input<float>(task, slots, kBias), s.bias);
    load_state(p.r, d, optional_input<float>(task, slots, kInitialState), s.state);
    load_state(p.r, d, optional_input<float>(task, slots, kInitialCell), s.cell);
  }

  // Calls f(rows, m, bias, sums) for the input's part of the chunk of steps from `begin` on.
  template <typename F>
  void with_input(int64_t begin, F f) const {
    const int64_t steps = steps_from(begin);
    f(sequences_.rows_of(begin, steps), steps * p_.r.batch, s_.bias, s_.input_part);
  }

  // `has_input`: of the first chunk.
  template <typename Weights>
  void run(const Weights& weights, bool has_input = false) const {
    const Recurrence& r = p_.r;
    const float* peephole = optional_input<float>(task_, slots_, kPeephole);
    if (peephole) peephole += d_ * 3 * r.hidden;
    for (int64_t begin = 0; steps_from(begin) > 0; begin += r.chunk) {
      if (begin > 0 || !has_input) with_input(begin, [&](auto... operands) { weights.input(operands...); });
      for (int64_t step = begin; step < begin + steps_from(begin); ++step) {
        weights.state(step, s_.state, s_.input_part + (step - begin) * r.batch * p_.gates(), s_.gates);
        for (int64_t b = 0; b < r.batch; ++b) {
          const int64_t time = sequences_.time_of(step, b);
          if (time < 0) continue;
          float* state = s_.state + b * r.hidden;
          step_lstm(p_.cells[d_], s_.gates + b * p_.gates(), peephole, s_.cell + b * r.hidden, state);
          sequences_.write(time, b, state);
        }
      }
    }
    sequences_.clear_after_ends();
    if (task_.has_output(slots_, 1)) store_state(r, d_, s_.state, task_.output<float>(slots_, 1));
    if (task_.has_output(slots_, 2)) store_state(r, d_, s_.cell, task_.output<float>(slots_, 2));
  }

 private:
  int64_t steps_from(int64_t begin) const { return std::min(p_.r.chunk, sequences_.longest() - begin); }

  const Task& task_;
  void* const* const slots_;
  const LstmPlan& p_;
  const LstmScratch<X>& s_;
  const int d_;
  const Sequences<X> sequences_;
};

}  // namespace asc::cpu
