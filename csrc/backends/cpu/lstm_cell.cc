#include "backends/cpu/lstm_cell.h"

#include <cstring>
#include <string>

namespace asc::cpu {
namespace {

template <VecTable::Unary VecTable::* kFunction>
void apply_unary(const Activation&, float* x, size_t n) {
  (vec_table().*kFunction)(x, x, n);
}

template <VecTable::ParamUnary VecTable::* kFunction>
void apply_param(const Activation& a, float* x, size_t n) {
  (vec_table().*kFunction)(x, x, n, a.alpha, a.beta);
}

void apply_scaled_tanh(const Activation& a, float* x, size_t n) {
  const VecTable& v = vec_table();
  v.scale_shift(x, x, n, a.beta, 0.0f);
  v.tanh(x, x, n);
  v.scale_shift(x, x, n, a.alpha, 0.0f);
}

// Which of the lists activation_alpha and activation_beta an activation takes an entry of, and its defaults.
struct KnownActivation {
  const char* name;
  void (*apply)(const Activation&, float*, size_t);
  bool has_alpha, has_beta;
  float alpha, beta;
};

constexpr KnownActivation kActivations[] = {
    {"Sigmoid", apply_unary<&VecTable::sigmoid>, false, false, 0, 0},
    {"Tanh", apply_unary<&VecTable::tanh>, false, false, 0, 0},
    {"Relu", apply_unary<&VecTable::relu>, false, false, 0, 0},
    {"Softsign", apply_unary<&VecTable::softsign>, false, false, 0, 0},
    {"Softplus", apply_unary<&VecTable::softplus>, false, false, 0, 0},
    {"Affine", apply_param<&VecTable::scale_shift>, true, true, 1, 0},
    {"LeakyRelu", apply_param<&VecTable::leaky_relu>, true, false, 0.01f, 0},
    {"ThresholdedRelu", apply_param<&VecTable::thresholded_relu>, true, false, 1, 0},
    {"Elu", apply_param<&VecTable::elu>, true, false, 1, 0},
    {"HardSigmoid", apply_param<&VecTable::hard_sigmoid>, true, true, 0.2f, 0.5f},
    {"ScaledTanh", apply_scaled_tanh, true, true, 1, 1},
};

const KnownActivation& find_activation(const TilingContext& ctx, const std::string& name) {
  for (const KnownActivation& k : kActivations)
    if (name == k.name) return k;
  ctx.unsupported("activation '" + name + "'; use one that ONNX defines");
}

}  // namespace

bool is_sigmoid(const Activation& a) { return a.apply == apply_unary<&VecTable::sigmoid>; }
bool is_tanh(const Activation& a) { return a.apply == apply_unary<&VecTable::tanh>; }

void read_activations(const TilingContext& ctx, const char* const* defaults, int count, int d, int directions,
                      Activation* out) {
  const Attributes& attributes = ctx.attributes();
  const std::vector<std::string>& names = attributes.get_strings("activations");
  if (!names.empty() && names.size() != static_cast<size_t>(count * directions))
    fail_tiling(ctx, "activations has " + std::to_string(names.size()) + " entries; give " + std::to_string(count) +
                         " per direction");
  const std::vector<double>&alphas = attributes.get_floats("activation_alpha"),
        &betas = attributes.get_floats("activation_beta");
  size_t next_alpha = 0, next_beta = 0;
  for (int i = 0; i < count * (d + 1); ++i) {  // earlier directions take their entries of the lists
    const KnownActivation& k = find_activation(ctx, names.empty() ? defaults[i % count] : names[i]);
    Activation& a = out[i % count];
    a = {k.apply, k.alpha, k.beta};
    if (k.has_alpha && next_alpha < alphas.size()) a.alpha = static_cast<float>(alphas[next_alpha++]);
    if (k.has_beta && next_beta < betas.size()) a.beta = static_cast<float>(betas[next_beta++]);
  }
}

LstmCell make_lstm_cell(const TilingContext& ctx, int64_t hidden, int d, int directions) {
  constexpr const char* kDefaults[] = {"Sigmoid", "Tanh", "Tanh"};
  Activation activations[3];
  read_activations(ctx, kDefaults, 3, d, directions, activations);
  LstmCell c;
  c.hidden = c.side = hidden;
  c.gate = activations[0], c.candidate = activations[1], c.output = activations[2];
  c.clip = static_cast<float>(ctx.attributes().get_float("clip", 0.0));
  c.couples_forget = ctx.attr("input_forget", 0) != 0;
  c.is_plain = is_sigmoid(c.gate) && is_tanh(c.candidate) && is_tanh(c.output) && !(c.clip > 0) && !c.couples_forget;
  return c;
}

void step_lstm(const LstmCell& c, float* gates, const float* peephole, float* cell, float* state) {
  const VecTable& v = vec_table();
  const auto n = static_cast<size_t>(c.hidden);
  if (c.is_plain && !peephole) return v.lstm_cells(gates, cell, state, n, static_cast<size_t>(c.side));
  float *input = gates, *output = gates + n, *forget = gates + 2 * n, *candidate = gates + 3 * n;
  if (peephole) {
    v.mul_add(peephole, cell, input, input, n);
    v.mul_add(peephole + 2 * n, cell, forget, forget, n);
  }
  const auto bound = [&](float* x, size_t count) {
    if (c.clip > 0) v.clip(x, x, count, -c.clip, c.clip);
  };
  if (peephole) {  // the output gate still waits for the new cell
    bound(input, n);
    bound(forget, 2 * n);
    c.gate.apply(c.gate, input, n);
    c.gate.apply(c.gate, forget, n);
  } else {
    bound(gates, 4 * n);
    c.gate.apply(c.gate, input, 3 * n);
  }
  c.candidate.apply(c.candidate, candidate, n);
  if (c.couples_forget) v.scale_shift(input, forget, n, -1.0f, 1.0f);
  v.mul.vv(input, candidate, candidate, n);
  v.mul_add(forget, cell, candidate, cell, n);
  if (peephole) {
    v.mul_add(peephole + n, cell, output, output, n);
    bound(output, n);
    c.gate.apply(c.gate, output, n);
  }
  std::memcpy(state, cell, n * sizeof(float));
  c.output.apply(c.output, state, n);
  v.mul.vv(output, state, state, n);
}

}  // namespace asc::cpu
