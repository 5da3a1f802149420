// One step of an LSTM cell: activations by name, and the arithmetic on gates that are already summed up.
#pragma once

#include <cstdint>

#include "backends/cpu/tiling_base.h"
#include "backends/cpu/vec_table.h"

namespace asc::cpu {

// y = f(x), in place, with the parameters of the ONNX activation.
struct Activation {
  void (*apply)(const Activation& self, float* x, size_t n) = nullptr;
  float alpha = 0, beta = 0;
};

// The `count` activations of direction `d`, by the attributes activations, activation_alpha and activation_beta. Throws
// GraphError for lists of a wrong length and UnsupportedError for unknown activations.
void read_activations(const TilingContext& ctx, const char* const* defaults, int count, int d, int directions,
                      Activation* out);

bool is_sigmoid(const Activation& a);
bool is_tanh(const Activation& a);

// The cell of one direction. Gates lie in the order of ONNX: input, output, forget, cell.
struct LstmCell {
  int64_t hidden = 0;
  int64_t side = 0;  // units whose gates lie side by side, as VecTable::lstm_cells has it; fewer than all: plain cells
  Activation gate, candidate, output;  // f, g and h of the ONNX formulas
  float clip = 0;                      // bound of what enters gate and candidate activations; 0: none
  bool couples_forget = false;         // forget = 1 - input
  bool is_plain = false;               // peepholes apart, VecTable::lstm_cells does it
};

// From the attributes of the node, direction `d` of `directions`. Throws as read_activations does.
LstmCell make_lstm_cell(const TilingContext& ctx, int64_t hidden, int d, int directions);

// One row of the batch: `gates` (4 * hidden, overwritten), `peephole` (3 * hidden: input, output, forget; may be null),
// `cell` (hidden, updated), `state` (hidden, written).
void step_lstm(const LstmCell& c, float* gates, const float* peephole, float* cell, float* state);

}  // namespace asc::cpu
