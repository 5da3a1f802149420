// Steps of an LSTM on bytes, with products beside them, against plain loops in double precision.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "backends/cpu/byte_lstm.h"
#include "byte_case.h"

namespace {

using asc::cpu::ByteLstm, asc::cpu::ByteLstmBeside;
using byte_case::Case, byte_case::Product, byte_case::random_case, byte_case::count_wrong;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// The rows of a product beside steps share a zero point.
Case beside_case(int64_t m, int64_t k, int64_t n) {
  Case c = random_case(m, k, n, false, true);
  if (m > 0) std::fill(c.a_zeros.begin(), c.a_zeros.end(), c.a_zeros[0]);
  return c;
}

// A step from given cells; whether they and the states are those of the formulas.
bool is_right(const Case& c, const Product& p, const std::vector<float>& before, const std::vector<float>& cell,
              const std::vector<float>& state) {
  const auto units = static_cast<int64_t>(cell.size());
  double worst = 0;
  for (int64_t u = 0; u < units; ++u) {
    const auto gate = [&](int64_t g) {
      const int64_t at = u / ByteLstm::kUnits * 4 * ByteLstm::kUnits + g * ByteLstm::kUnits + u % ByteLstm::kUnits;
      return static_cast<double>(c.wanted(0, at)) * p.args.a_scale * p.scales[at] + p.add[at];
    };
    const double next = sigmoid(gate(2)) * before[u] + sigmoid(gate(0)) * std::tanh(gate(3));
    worst = std::max({worst, std::fabs(next - cell[u]), std::fabs(sigmoid(gate(1)) * std::tanh(next) - state[u])});
  }
  return worst < 1e-6;
}

void check(const ByteLstm& lstm, const Case& c, const Case& other, int steps) {
  Product rest(other);
  ByteLstmBeside beside;
  beside.product = rest.args;
  beside.product.a_zero_step = 0;
  beside.ahead = reinterpret_cast<const char*>(rest.packed.data());
  beside.ahead_end = beside.ahead + other.k * other.n;
  int wrong = 0;
  for (int i = 0; i < steps; ++i) {
    Product one(c);
    one.args.a_scale = 1e-5f * static_cast<float>(i + 1);
    one.args.backwards = i % 2 != 0;
    for (size_t j = 0; j < one.add.size(); ++j) one.add[j] = 0.01f * static_cast<float>(j % 700) - 3.5f;
    const std::vector<float> before(static_cast<size_t>(c.n / 4), 0.25f * static_cast<float>(i));
    std::vector<float> cell = before, state(before.size(), -9.0f);
    lstm.step({one.args, cell.data(), state.data()}, beside);
    wrong += !is_right(c, one, before, cell, state);
  }
  CHECK(wrong == 0);
  lstm.finish(beside);
  CHECK(count_wrong(other, rest.scaled) == 0);
}

TEST_CASE("steps are right, and the product beside them is exact, however far they bring it") {
  const ByteLstm* lstm = asc::cpu::byte_lstm();
  if (!lstm) return;  // needs AVX512-VNNI
  for (const int64_t units : {16, 64, 80})
    for (const int64_t k : {4, 20, 64, 132})
      for (const auto& [other_k, other_n] : {std::pair<int64_t, int64_t>{4, 64}, {132, 128}, {512, 64}})
        for (int64_t m = 0; m <= ByteLstm::kRows; ++m)
          for (const int steps : {0, 1, 2, 7})
            check(*lstm, random_case(1, k, 4 * units, false, true), beside_case(m, other_k, other_n), steps);
}

TEST_CASE("gates beyond every bound leave cells and states finite") {
  const ByteLstm* lstm = asc::cpu::byte_lstm();
  if (!lstm) return;
  const Case c = random_case(1, 64, 256, false, true);
  Product p(c);
  p.args.a_scale = 1e30f;
  std::vector<float> cell(64, 1.0f), state(64);
  ByteLstmBeside none;
  lstm->step({p.args, cell.data(), state.data()}, none);
  for (size_t u = 0; u < cell.size(); ++u) CHECK(std::fabs(cell[u]) <= 2.0f);
  for (size_t u = 0; u < cell.size(); ++u) CHECK(std::fabs(state[u]) <= 1.0f);
}

}  // namespace
