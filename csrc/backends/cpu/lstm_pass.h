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

// Weights have input(rows, m, bias, sums), for m rows of X, and state(step, state, part, sums), for the rows of the
// batch.
template <typename X, typename Weights>
void run_lstm(const Task& task, void* const* slots, const LstmPlan& p, const LstmScratch<X>& s, int d, const X* x,
              const Weights& weights) {
  const Recurrence& r = p.r;
  const float* peephole = optional_input<float>(task, slots, kPeephole);
  if (peephole) peephole += d * 3 * r.hidden;
  sum_lstm_bias(p, d, optional_input<float>(task, slots, kBias), s.bias);
  load_state(r, d, optional_input<float>(task, slots, kInitialState), s.state);
  load_state(r, d, optional_input<float>(task, slots, kInitialCell), s.cell);
  const Sequences<X> sequences(r, d, x, optional_input<int32_t>(task, slots, kLengths), s.rows,
                               task.has_output(slots, 0) ? task.output<float>(slots, 0) : nullptr);
  const int64_t longest = sequences.longest();
  for (int64_t begin = 0; begin < longest; begin += r.chunk) {
    const int64_t steps = std::min(r.chunk, longest - begin);
    weights.input(sequences.rows_of(begin, steps), steps * r.batch, s.bias, s.input_part);
    for (int64_t step = begin; step < begin + steps; ++step) {
      weights.state(step, s.state, s.input_part + (step - begin) * r.batch * p.gates(), s.gates);
      for (int64_t b = 0; b < r.batch; ++b) {
        const int64_t time = sequences.time_of(step, b);
        if (time < 0) continue;
        float* state = s.state + b * r.hidden;
        step_lstm(p.cells[d], s.gates + b * p.gates(), peephole, s.cell + b * r.hidden, state);
        sequences.write(time, b, state);
      }
    }
  }
  sequences.clear_after_ends();
  if (task.has_output(slots, 1)) store_state(r, d, s.state, task.output<float>(slots, 1));
  if (task.has_output(slots, 2)) store_state(r, d, s.cell, task.output<float>(slots, 2));
}

}  // namespace asc::cpu
