// Products with gathered rows: every version that the CPU runs, against plain loops.
#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "backends/cpu/tap_gemm.h"

namespace {

using asc::Isa;
using asc::cpu::TapGemmArgs;

void check(int64_t rows, int64_t k, int64_t width) {
  std::minstd_rand random(static_cast<uint32_t>(rows * 10007 + k * 101 + width));
  const auto number = [&] { return static_cast<float>(random() % 17) - 8.0f; };  // sums stay exact
  std::vector<float> x(500), b(static_cast<size_t>(k * width));
  std::vector<int32_t> a_rows, offsets, c_rows;
  for (float& v : x) v = number();
  for (float& v : b) v = number();
  for (int64_t i = 0; i < rows; ++i) {
    a_rows.push_back(static_cast<int32_t>(random() % 300));
    c_rows.push_back(static_cast<int32_t>(2 * (rows - 1 - i)));  // apart and in another order
  }
  for (int64_t p = 0; p < k; ++p) offsets.push_back(static_cast<int32_t>(random() % 200));
  for (const Isa isa : {Isa::kBase, Isa::kV3, Isa::kV4}) {
    const asc::cpu::TapGemm add = isa <= asc::detect_isa() ? asc::cpu::tap_gemm_of(isa) : nullptr;
    if (!add) continue;
    std::vector<float> c(static_cast<size_t>(2 * rows * width), 3.0f);
    TapGemmArgs args;
    args.rows = rows, args.k = k, args.width = width;
    args.x = x.data(), args.a_rows = a_rows.data(), args.offsets = offsets.data();
    args.b = b.data();
    args.c = c.data(), args.c_rows = c_rows.data();
    add(args);
    int wrong = 0;
    for (int64_t i = 0; i < 2 * rows; ++i)
      for (int64_t j = 0; j < width; ++j) {
        float want = 3.0f;
        const auto row = static_cast<size_t>(rows - 1 - i / 2);
        for (int64_t p = 0; p < k && i % 2 == 0; ++p)
          want += x[static_cast<size_t>(a_rows[row] + offsets[static_cast<size_t>(p)])] *
                  b[static_cast<size_t>(p * width + j)];
        wrong += c[static_cast<size_t>(i * width + j)] != want;
      }
    CHECK(wrong == 0);
  }
}

TEST_CASE("every version adds products of gathered rows, and touches no other row") {
  for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 25})
    for (const int64_t k : {0, 1, 2, 3, 4, 5, 9, 33})
      for (const int64_t width : {16, 32, 48, 64}) check(rows, k, width);
}

}  // namespace
