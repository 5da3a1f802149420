// Products with codes of few bits: every version that the CPU runs, against plain loops.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "backends/cpu/nbits_gemm.h"

namespace {

using asc::cpu::NBitsArgs;
using asc::cpu::NBitsMatrix;

enum class Zeros { kNone, kCodes, kReal };

struct Case {
  asc::NBitsWeights shape;
  int64_t m;
  Zeros zeros;
  std::vector<uint8_t> codes, zero_codes;
  std::vector<float> scales, zero_points, a, bias;

  int code_at(const std::vector<uint8_t>& bytes, int64_t at, int64_t i) const {
    const uint8_t byte = bytes[static_cast<size_t>(at + i * shape.bits / 8)];
    return shape.bits == 8 ? byte : (byte >> (4 * (i % 2))) & 15;
  }
  double weight(int64_t column, int64_t p) const {
    const int64_t block = p / shape.block, blocks = shape.blocks();
    const int code = code_at(codes, column * blocks * shape.block_bytes(), p);
    double zero = shape.default_zero();
    if (zeros == Zeros::kCodes) zero = code_at(zero_codes, column * shape.zero_bytes(), block);
    if (zeros == Zeros::kReal) zero = zero_points[static_cast<size_t>(column * blocks + block)];
    return (code - zero) * scales[static_cast<size_t>(column * blocks + block)];
  }
};

Case random_case(const asc::NBitsWeights& shape, int64_t m, Zeros zeros) {
  std::minstd_rand random(static_cast<uint32_t>(shape.k * 1009 + shape.n * 31 + m));
  const auto bytes = [&](int64_t count) {
    std::vector<uint8_t> v(static_cast<size_t>(count));
    for (uint8_t& x : v) x = static_cast<uint8_t>(random() >> 8);
    return v;
  };
  const auto reals = [&](int64_t count, float size) {
    std::vector<float> v(static_cast<size_t>(count));
    for (float& x : v) x = (static_cast<float>(random() % 2001) / 1000 - 1) * size;
    return v;
  };
  const int64_t blocks = shape.blocks() * shape.n;
  return {shape,
          m,
          zeros,
          bytes(blocks * shape.block_bytes()),
          bytes(shape.zero_bytes() * shape.n),
          reals(blocks, 0.1f),
          reals(blocks, 8),
          reals(m * shape.k, 1),
          reals(shape.n, 1)};
}

void check(const Case& c) {
  const bool has_zeros = c.zeros != Zeros::kNone;
  const void* zeros = !has_zeros                 ? nullptr
                      : c.zeros == Zeros::kCodes ? static_cast<const void*>(c.zero_codes.data())
                                                 : c.zero_points.data();
  std::vector<uint32_t> packed(NBitsMatrix::packed_bytes(c.shape, has_zeros) / 4);
  asc::cpu::pack_nbits(c.shape, c.codes.data(), c.scales.data(), zeros, c.zeros == Zeros::kCodes, packed.data());
  std::vector<float> sums;
  for (int64_t i = 0; i < c.m; ++i)
    for (int64_t b = 0; b < c.shape.blocks(); ++b) {
      float sum = 0;
      for (int64_t p = b * c.shape.block; p < std::min((b + 1) * c.shape.block, c.shape.k); ++p)
        sum += c.a[static_cast<size_t>(i * c.shape.k + p)];
      sums.push_back(sum);
    }
  NBitsArgs args;
  args.b = NBitsMatrix::of(packed.data(), c.shape, has_zeros);
  args.m = c.m;
  args.a = c.a.data();
  args.sums = sums.data();
  args.bias = c.bias.data();
  for (const asc::Isa isa : {asc::Isa::kBase, asc::Isa::kV3, asc::Isa::kV4}) {
    const asc::cpu::NBitsGemm* version = isa <= asc::detect_isa() ? asc::cpu::nbits_gemm_of(isa) : nullptr;
    if (!version) continue;
    std::vector<float> result(static_cast<size_t>(c.m * c.shape.n) + 1, 77.0f);
    args.c = result.data();
    for (int64_t panel = 0; panel < args.b.panels(); ++panel) version->multiply(args, panel);
    CHECK(result.back() == 77.0f);
    for (int64_t i = 0; i < c.m; ++i)
      for (int64_t j = 0; j < c.shape.n; ++j) {
        double wanted = c.bias[static_cast<size_t>(j)], size = 1;
        for (int64_t p = 0; p < c.shape.k; ++p) {
          const double term = c.a[static_cast<size_t>(i * c.shape.k + p)] * c.weight(j, p);
          wanted += term;
          size += std::fabs(term);
        }
        CHECK(std::fabs(result[static_cast<size_t>(i * c.shape.n + j)] - wanted) <= 2e-5 * size);
      }
  }
}

TEST_CASE("products with codes of 4 and 8 bits are right on every instruction set") {
  for (const int64_t bits : {4, 8})
    for (const Zeros zeros : {Zeros::kNone, Zeros::kCodes, Zeros::kReal})
      for (const auto& [m, k, n, block] : std::vector<std::array<int64_t, 4>>{
               {1, 1, 1, 16}, {1, 64, 64, 32}, {3, 33, 17, 16}, {5, 100, 130, 64}, {7, 259, 31, 128}, {4, 48, 200, 16}})
        check(random_case({k, n, bits, block}, m, zeros));
}

}  // namespace
