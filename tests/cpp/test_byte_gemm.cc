// Products of bytes: every version that the CPU runs, against plain loops.
#include <doctest/doctest.h>

#include <utility>

#include "byte_case.h"

namespace {

using byte_case::Case, byte_case::Product, byte_case::random_case, byte_case::count_wrong;

void check(const Case& c) {
  for (const asc::cpu::ByteGemm* version : asc::cpu::runnable_byte_gemms()) {
    Product p(c);
    version->sums(p.args);
    version->scaled(p.args);
    int wrong = 0;
    for (int64_t i = 0; i < c.m; ++i)
      for (int64_t j = 0; j < c.n; ++j) wrong += p.sums[static_cast<size_t>(i * c.n + j)] != c.wanted(i, j);
    CHECK(wrong == 0);
    CHECK(count_wrong(c, p.scaled) == 0);
  }
}

TEST_CASE("every version multiplies bytes exactly at every shape and signedness") {
  for (const bool a_is_signed : {false, true})
    for (const bool b_is_signed : {false, true})
      for (const int64_t n : {1, 4, 15, 16, 33, 64, 70, 129})
        for (const auto& [m, k] : {std::pair<int64_t, int64_t>{1, 1}, {1, 256}, {2, 3}, {3, 18}, {5, 64}, {6, 131}})
          check(random_case(m, k, n, a_is_signed, b_is_signed));
}

}  // namespace
