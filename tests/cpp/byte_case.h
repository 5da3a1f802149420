// Products of bytes for tests: random operands, as the kernels take them, and what is wanted of them.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "backends/cpu/byte_gemm.h"

namespace byte_case {

using asc::cpu::ByteGemmArgs;
using asc::cpu::ByteMatrix;

struct Case {
  int64_t m, k, n;
  bool a_is_signed, b_is_signed;
  std::vector<uint8_t> a, b, a_zeros, b_zeros;

  static int32_t value(uint8_t byte, bool is_signed) { return is_signed ? static_cast<int8_t>(byte) : byte; }
  int32_t wanted(int64_t i, int64_t j) const {
    int32_t sum = 0;
    for (int64_t p = 0; p < k; ++p)
      sum += (value(a[i * k + p], a_is_signed) - value(a_zeros[i], a_is_signed)) *
             (value(b[p * n + j], b_is_signed) - value(b_zeros[j], b_is_signed));
    return sum;
  }
};

inline Case random_case(int64_t m, int64_t k, int64_t n, bool a_is_signed, bool b_is_signed) {
  std::minstd_rand random(static_cast<uint32_t>(m * 10007 + k * 101 + n));
  const auto bytes = [&](int64_t count) {
    std::vector<uint8_t> v(static_cast<size_t>(count));
    for (uint8_t& x : v) x = static_cast<uint8_t>(random() >> 8);
    return v;
  };
  return {m, k, n, a_is_signed, b_is_signed, bytes(m * k), bytes(k * n), bytes(m), bytes(n)};
}

// The operands of a case as the kernels take them.
struct Product {
  explicit Product(const Case& c)
      : packed(ByteMatrix::packed_bytes(c.k, c.n) / sizeof(int64_t)),
        row_sums(static_cast<size_t>(c.m)),
        sums(static_cast<size_t>(c.m * c.n), -1),
        scaled(sums.size(), -1.0f),
        scales(static_cast<size_t>(ByteMatrix::padded_columns(c.n)), 0.5f),
        add(static_cast<size_t>(c.n), 3.0f) {
    asc::cpu::pack_bytes(c.b.data(), c.b_is_signed, {c.b_zeros.data(), 1}, c.k, c.n, packed.data());
    for (uint8_t z : c.a_zeros) zeros.push_back(Case::value(z, c.a_is_signed) + (c.a_is_signed ? 128 : 0));
    asc::cpu::sum_byte_rows(c.a.data(), c.a_is_signed, c.m, c.k, row_sums.data());
    args.m = c.m;
    args.a = c.a.data(), args.a_is_signed = c.a_is_signed;
    args.a_zeros = zeros.data(), args.a_zero_step = 1;
    args.row_sums = row_sums.data();
    args.b = ByteMatrix::of(packed.data(), c.k, c.n);
    args.c = sums.data();
    args.y = scaled.data();
    args.a_scale = 0.25f;
    args.scales = scales.data();
    args.add = add.data();
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  std::vector<int64_t> packed;
  std::vector<int32_t> zeros, row_sums, sums;
  std::vector<float> scaled, scales, add;
  ByteGemmArgs args;
};

inline int count_wrong(const Case& c, const std::vector<float>& scaled) {
  int wrong = 0;
  for (int64_t i = 0; i < c.m; ++i)
    for (int64_t j = 0; j < c.n; ++j)
      wrong += scaled[static_cast<size_t>(i * c.n + j)] != static_cast<float>(c.wanted(i, j)) * 0.125f + 3.0f;
  return wrong;
}

}  // namespace byte_case
