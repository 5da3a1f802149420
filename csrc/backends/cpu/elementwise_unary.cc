// Unary functions of floating-point tensors: float32 by the vector table or the C library, float64 by the C library,
// 16-bit floats through float32.
#include <cmath>
#include <utility>

#include "backends/cpu/element_step.h"
#include "backends/cpu/elementwise.h"

namespace asc {
namespace {

template <typename T>
using Row = void (*)(const T* x, T* y, size_t n, T p, T q);

template <typename T, T (*F)(T)>
void row(const T* x, T* y, size_t n, T, T) {
  for (size_t i = 0; i < n; ++i) y[i] = F(x[i]);
}
template <double (*F)(double, double, double)>
void param_row(const double* x, double* y, size_t n, double p, double q) {
  for (size_t i = 0; i < n; ++i) y[i] = F(x[i], p, q);
}

// --- float64 forms of what the C library lacks -------------------------------------------------------------------

double neg64(double x) { return -x; }
double reciprocal64(double x) { return 1 / x; }
double sign64(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
double relu64(double x) { return x < 0 ? 0 : x; }
double sigmoid64(double x) {
  const double e = std::exp(-std::fabs(x));
  return (x < 0 ? e : 1) / (1 + e);
}
double gelu64(double x) { return x * 0.5 * std::erfc(-x * M_SQRT1_2); }
double gelu_tanh64(double x) { return x * sigmoid64(1.5957691216057308 * x * (1 + 0.044715 * x * x)); }
double softplus64(double x) { return (x > 0 ? x : 0) + std::log1p(std::exp(-std::fabs(x))); }
double softsign64(double x) { return x / (1 + std::fabs(x)); }
double mish64(double x) { return x * std::tanh(softplus64(x)); }
double hard_sigmoid64(double x, double alpha, double beta) {
  const double v = alpha * x + beta;
  return v < 0 ? 0 : v > 1 ? 1 : v;
}
double hard_swish64(double x) { return x * hard_sigmoid64(x, 1.0 / 6, 0.5); }
double leaky_relu64(double x, double alpha, double) { return x < 0 ? alpha * x : x; }
double elu64(double x, double alpha, double) { return x < 0 ? alpha * std::expm1(x) : x; }
double selu64(double x, double alpha, double gamma) { return gamma * elu64(x, alpha, 0); }
double celu64(double x, double alpha, double) { return x < 0 ? alpha * std::expm1(x / alpha) : x; }
double thresholded_relu64(double x, double alpha, double) { return x <= alpha ? 0 : x; }
double swish64(double x, double alpha, double) { return x * sigmoid64(alpha * x); }

// --- the operators -------------------------------------------------------------------------------------------------

struct UnarySpec {
  const char* op;
  VecTable::Unary VecTable::* plain;  // one of plain, param and row32 is set
  VecTable::ParamUnary VecTable::* param;
  Row<float> row32;
  Row<double> row64;
  const char* p_name = nullptr;
  double p_default = 0;
  const char* q_name = nullptr;
  double q_default = 0;
};

constexpr double kSeluAlpha = 1.67326319217681884765625, kSeluGamma = 1.05070102214813232421875;

const UnarySpec kSpecs[] = {
    {"Abs", &VecTable::abs, nullptr, nullptr, row<double, fabs>},
    {"Neg", &VecTable::neg, nullptr, nullptr, row<double, neg64>},
    {"Exp", &VecTable::exp, nullptr, nullptr, row<double, exp>},
    {"Log", &VecTable::log, nullptr, nullptr, row<double, log>},
    {"Sqrt", &VecTable::sqrt, nullptr, nullptr, row<double, sqrt>},
    {"Reciprocal", &VecTable::reciprocal, nullptr, nullptr, row<double, reciprocal64>},
    {"Sin", &VecTable::sin, nullptr, nullptr, row<double, sin>},
    {"Cos", &VecTable::cos, nullptr, nullptr, row<double, cos>},
    {"Tan", nullptr, nullptr, row<float, tanf>, row<double, tan>},
    {"Asin", nullptr, nullptr, row<float, asinf>, row<double, asin>},
    {"Acos", nullptr, nullptr, row<float, acosf>, row<double, acos>},
    {"Atan", nullptr, nullptr, row<float, atanf>, row<double, atan>},
    {"Sinh", nullptr, nullptr, row<float, sinhf>, row<double, sinh>},
    {"Cosh", nullptr, nullptr, row<float, coshf>, row<double, cosh>},
    {"Asinh", nullptr, nullptr, row<float, asinhf>, row<double, asinh>},
    {"Acosh", nullptr, nullptr, row<float, acoshf>, row<double, acosh>},
    {"Atanh", nullptr, nullptr, row<float, atanhf>, row<double, atanh>},
    {"Tanh", &VecTable::tanh, nullptr, nullptr, row<double, tanh>},
    {"Erf", &VecTable::erf, nullptr, nullptr, row<double, erf>},
    {"Floor", &VecTable::floor, nullptr, nullptr, row<double, floor>},
    {"Ceil", &VecTable::ceil, nullptr, nullptr, row<double, ceil>},
    {"Round", &VecTable::round, nullptr, nullptr, row<double, nearbyint>},
    {"Sign", &VecTable::sign, nullptr, nullptr, row<double, sign64>},
    {"Relu", &VecTable::relu, nullptr, nullptr, row<double, relu64>},
    {"Sigmoid", &VecTable::sigmoid, nullptr, nullptr, row<double, sigmoid64>},
    {"Softplus", &VecTable::softplus, nullptr, nullptr, row<double, softplus64>},
    {"Softsign", &VecTable::softsign, nullptr, nullptr, row<double, softsign64>},
    {"Mish", &VecTable::mish, nullptr, nullptr, row<double, mish64>},
    {"HardSwish", &VecTable::hard_swish, nullptr, nullptr, row<double, hard_swish64>},
    {"LeakyRelu", nullptr, &VecTable::leaky_relu, nullptr, param_row<leaky_relu64>, "alpha", 0.01},
    {"Elu", nullptr, &VecTable::elu, nullptr, param_row<elu64>, "alpha", 1},
    {"Selu", nullptr, &VecTable::selu, nullptr, param_row<selu64>, "alpha", kSeluAlpha, "gamma", kSeluGamma},
    {"Celu", nullptr, &VecTable::celu, nullptr, param_row<celu64>, "alpha", 1},
    {"ThresholdedRelu", nullptr, &VecTable::thresholded_relu, nullptr, param_row<thresholded_relu64>, "alpha", 1},
    {"HardSigmoid", nullptr, &VecTable::hard_sigmoid, nullptr, param_row<hard_sigmoid64>, "alpha", 0.2, "beta", 0.5},
    {"Swish", nullptr, &VecTable::swish, nullptr, param_row<swish64>, "alpha", 1},
    {"Gelu", &VecTable::gelu, nullptr, nullptr, row<double, gelu64>},
};

constexpr size_t kSpecCount = sizeof(kSpecs) / sizeof(kSpecs[0]);
const UnarySpec kGeluTanh = {"Gelu", &VecTable::gelu_tanh, nullptr, nullptr, row<double, gelu_tanh64>};

// --- launch --------------------------------------------------------------------------------------------------------

struct UnaryTiling : PlainTiling<UnaryTiling> {
  size_t count = 0;
  VecTable::Unary plain = nullptr;
  Row<float> row32 = nullptr;
  Row<double> row64 = nullptr;
  double p = 0, q = 0;
  HalfCodec codec;

  void run32(const float* x, float* y, size_t n) const {
    if (plain)
      plain(x, y, n);
    else
      row32(x, y, n, static_cast<float>(p), static_cast<float>(q));
  }
};

Status launch_float32(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const UnaryTiling*>(task.tiling);
  t.run32(task.input<float>(slots, 0), task.output<float>(slots, 0), t.count);
  return Status::kOk;
}

Status launch_float64(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const UnaryTiling*>(task.tiling);
  t.row64(task.input<double>(slots, 0), task.output<double>(slots, 0), t.count, t.p, t.q);
  return Status::kOk;
}

Status launch_half(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const UnaryTiling*>(task.tiling);
  const auto* x = task.input<uint16_t>(slots, 0);
  auto* y = task.output<uint16_t>(slots, 0);
  alignas(kAlignment) float chunk[kChunk];
  for (size_t i = 0; i < t.count; i += kChunk) {
    const size_t n = t.count - i < kChunk ? t.count - i : kChunk;
    t.codec.widen(x + i, chunk, n);
    t.run32(chunk, chunk, n);
    t.codec.narrow(chunk, y + i, n);
  }
  return Status::kOk;
}

std::shared_ptr<const Tiling> tile(const UnarySpec& spec, const TilingContext& ctx) {
  auto t = std::make_shared<UnaryTiling>();
  t->count = element_count(ctx.output(0));
  t->over_inputs = inputs_like_output(ctx);
  if (spec.p_name) t->p = ctx.attributes().get_float(spec.p_name, spec.p_default);
  if (spec.q_name) t->q = ctx.attributes().get_float(spec.q_name, spec.q_default);
  t->row64 = spec.row64;
  if (spec.plain) t->plain = vec_table().*spec.plain;
  t->row32 = spec.param ? vec_table().*spec.param : spec.row32;
  t->implementation = spec.row32 || ctx.dtype(0) == DType::kFloat64 ? "scalar" : "vector";
  if (ctx.dtype(0) == DType::kFloat64) {
    t->launch = launch_float64;
  } else if (ctx.dtype(0) == DType::kFloat32) {
    t->launch = launch_float32;
  } else {
    t->codec = half_codec(ctx.dtype(0));
    t->launch = launch_half;
  }
  return t;
}

template <size_t kIndex>
std::shared_ptr<const Tiling> tile_spec(const TilingContext& ctx) {
  return tile(kSpecs[kIndex], ctx);
}

std::shared_ptr<const Tiling> tile_gelu(const TilingContext& ctx) {
  const std::string_view form = ctx.attributes().get_string("approximate", "none");
  if (form == "tanh") return tile(kGeluTanh, ctx);
  if (form != "none") ctx.unsupported("approximate must be none or tanh: got '" + std::string(form) + "'");
  return tile(kSpecs[kSpecCount - 1], ctx);
}

template <size_t... kIndices>
void register_specs(KernelRegistry& registry, std::index_sequence<kIndices...>) {
  (registry.add(kSpecs[kIndices].op, kFloats, tile_spec<kIndices>), ...);
}

}  // namespace

bool find_unary_step(const Node& node, ElementStep* step) {
  for (const UnarySpec& listed : kSpecs) {
    if (node.op != listed.op) continue;
    const std::string_view form = node.attributes.get_string("approximate", "none");
    if (node.op == "Gelu" && form != "none" && form != "tanh") return false;
    const UnarySpec& spec = node.op == "Gelu" && form == "tanh" ? kGeluTanh : listed;
    if (spec.row32) return false;
    if (spec.plain) step->unary = vec_table().*spec.plain;
    if (spec.param) step->param = vec_table().*spec.param;
    if (spec.p_name) step->p = static_cast<float>(node.attributes.get_float(spec.p_name, spec.p_default));
    if (spec.q_name) step->q = static_cast<float>(node.attributes.get_float(spec.q_name, spec.q_default));
    return true;
  }
  return false;
}

void register_unary_kernels(KernelRegistry& registry) {
  register_specs(registry, std::make_index_sequence<kSpecCount - 1>());
  registry.add("Gelu", kFloats, tile_gelu);
}

}  // namespace asc
