#include "kernel/work.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace asc {
namespace {

template <size_t N>
bool is_one_of(std::string_view op, const std::string_view (&names)[N]) {
  return std::find(std::begin(names), std::end(names), op) != std::end(names);
}

constexpr std::string_view kProducts[] = {
    "MatMul",       "Gemm",          "Conv",          "ConvTranspose",    "MatMulInteger",
    "ConvInteger",  "QLinearMatMul", "MatMulNBits",   "MatMulBFloat16",   "GemmBFloat16",
    "ConvBFloat16", "ConvLast",      "GroupedMatMul", "ConvTransposeLast"};
// Their steps multiply by their second and third input, once for every entry of the batch.
constexpr std::string_view kRecurrent[] = {"LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"};
// They read of their first input only what they write.
constexpr std::string_view kPickers[] = {"Gather", "Slice", "GatherElements", "GatherND", "Expand", "Tile"};

double operations_per_element(std::string_view op) {
  if (op == "Softmax" || op == "LayerNormalization" || op == "Erf") return 8;
  if (op == "RMSNormalization" || op == "Sigmoid") return 6;
  if (op == "DFT" || op == "STFT") return 20;  // 2.5 times the logarithm of a frame's length
  return op == "Gelu" ? 12 : 1;
}

double count(const Shape& shape) { return static_cast<double>(shape.num_elements()); }

void add_moved(Work& work, DType type, double elements) {
  if (type == DType::kFloat32)
    work.floats += elements;
  else
    work.bytes += elements * static_cast<double>(size_of(type));
}

// 2 x results x length of the sums.
double product_operations(const TilingContext& ctx, double out) {
  std::vector<int> present;
  for (int i = 0; i < ctx.input_count(); ++i)
    if (ctx.has_input(i) && ctx.input(i).rank() >= 2) present.push_back(i);
  if (present.empty() || out == 0) return 0;
  const std::string_view op = ctx.node().op;
  if (op.substr(0, 4) != "Conv") {
    const Shape& first = ctx.input(present[0]);
    return 2.0 * out * static_cast<double>(first[first.rank() - 1]);
  }
  const auto constant = std::find_if(present.begin(), present.end(), [&](int i) { return ctx.is_constant(i); });
  const Shape& weights = ctx.input(constant == present.end() ? present.back() : *constant);
  return 2.0 * out *
         (count(weights) / std::max(1.0, static_cast<double>(weights[op.substr(0, 13) == "ConvTranspose" ? 1 : 0])));
}

}  // namespace

Work work_of(const TilingContext& ctx) {
  const std::string_view op = ctx.node().op;
  const bool is_product = is_one_of(op, kProducts);
  Work work;
  double widest = 0;
  for (int i = 0; i < ctx.output_count(); ++i) {
    if (ctx.output_dtype(i) == DType::kUndefined) continue;
    const double elements = count(ctx.output(i));
    add_moved(work, ctx.output_dtype(i), elements);
    widest = std::max(widest, elements);
  }
  if (is_one_of(op, kPickers)) {
    work.floats *= 2;
    work.bytes *= 2;
  }
  for (int i = 0; i < ctx.input_count(); ++i) {
    if (!ctx.has_input(i)) continue;
    const double elements = count(ctx.input(i));
    if (!is_one_of(op, kPickers)) add_moved(work, ctx.dtype(i), elements);
    if (!(is_product && ctx.is_constant(i))) widest = std::max(widest, elements);
    work.is_int8 |= is_product && op != "MatMulNBits" && size_of(ctx.dtype(i)) == 1;
  }
  const double out = ctx.output_count() ? count(ctx.output(0)) : 0;
  if (is_product)
    work.matrix = product_operations(ctx, out);
  else
    work.vector = operations_per_element(op) * widest;
  if (is_one_of(op, kRecurrent) && ctx.input_count() > 2 && ctx.has_input(0) && ctx.input(0).rank() >= 2) {
    const double weights = count(ctx.input(1)) + count(ctx.input(2));
    work.matrix = 2.0 * static_cast<double>(ctx.input(0)[0]) * static_cast<double>(ctx.input(0)[1]) * weights;
  }
  return work;
}

}  // namespace asc
