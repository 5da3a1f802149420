// The rules of DFT and STFT.
#include "op_case.h"

namespace {

using asc::DType;
using asc::GraphError;
using asc::Shape;
using asc::test::Case;
using asc::test::scalar;

Case dft(const Shape& x, int64_t inverse, int64_t onesided) {
  return Case("DFT").set("inverse", inverse).set("onesided", onesided).input(x);
}

}  // namespace

TEST_CASE("DFT gives complex bins, half of them one-sided, and real samples where both flags are set") {
  CHECK(dft({2, 8, 1}, 0, 0).shape() == "[2, 8, 2]");
  CHECK(dft({2, 8, 1}, 0, 1).shape() == "[2, 5, 2]");
  CHECK(dft({2, 7, 1}, 0, 1).shape() == "[2, 4, 2]");
  CHECK(dft({2, 8, 2}, 1, 0).shape() == "[2, 8, 2]");
  CHECK(dft({2, 5, 2}, 1, 1).shape() == "[2, 8, 1]");
  CHECK(dft({2, 5, 2}, 1, 1).host(scalar(9)).shape() == "[2, 9, 1]");
  CHECK(dft({2, 8, 6, 1}, 0, 1).absent().host(scalar(1)).shape() == "[2, 5, 6, 2]");
  CHECK(dft({2, 8, 6, 1}, 0, 1).host(scalar(12)).host(scalar(-4)).shape() == "[7, 8, 6, 2]");
  CHECK(dft({2, 0, 1}, 0, 0).shape() == "[2, 0, 2]");
  CHECK(Case("DFT").input({2, 8, 1}, DType::kFloat16).type() == DType::kFloat16);
}

TEST_CASE("DFT refuses lengths, axes and parts that do not fit") {
  for (int64_t length : {int64_t{0}, int64_t{-1}, int64_t{1} << 40, INT64_MIN, INT64_MAX})
    CHECK_THROWS_AS(dft({2, 8, 1}, 0, 0).host(scalar(length)).shape(), GraphError);
  for (int64_t axis : {int64_t{2}, int64_t{-1}, int64_t{3}, INT64_MIN})
    CHECK_THROWS_AS(dft({2, 8, 1}, 0, 0).absent().host(scalar(axis)).shape(), GraphError);
  CHECK_THROWS_AS(dft({2, 8, 3}, 0, 0).shape(), GraphError);
  CHECK_THROWS_AS(dft({8}, 0, 0).shape(), GraphError);
  CHECK_THROWS_AS(dft({2, 8, 1}, 1, 1).shape(), GraphError);
  CHECK_THROWS_AS(dft({2, 1, 2}, 1, 1).shape(), GraphError);
  CHECK_THROWS_AS(dft({0, 8, int64_t{1} << 50, 1}, 0, 0).host(scalar(1 << 20)).host(scalar(1)).shape(), GraphError);
  CHECK_THROWS_AS(Case("DFT").input({2, 8, 1}, DType::kInt32).type(), GraphError);
}

TEST_CASE("STFT has a frame for each step that leaves room for it") {
  const auto stft = [](const Shape& x, int64_t step) { return Case("STFT").input(x).host(scalar(step)); };
  CHECK(stft({2, 64}, 8).input({16}).shape() == "[2, 7, 9, 2]");
  CHECK(stft({2, 64, 1}, 8).input({16}).host(scalar(16)).shape() == "[2, 7, 9, 2]");
  CHECK(stft({2, 64, 2}, 9).absent().host(scalar(15)).shape() == "[2, 6, 8, 2]");
  CHECK(stft({2, 64}, 8).shape() == "[2, 1, 33, 2]");
  CHECK(stft({2, 64}, INT64_MAX).input({16}).shape() == "[2, 1, 9, 2]");
  CHECK(stft({2, 64}, 8).set("onesided", int64_t{0}).input({16}).shape() == "[2, 7, 16, 2]");
  for (int64_t step : {int64_t{0}, int64_t{-8}, INT64_MIN})
    CHECK_THROWS_AS(stft({2, 64}, step).input({16}).shape(), GraphError);
  for (int64_t length : {int64_t{0}, int64_t{-1}, int64_t{65}, INT64_MAX})
    CHECK_THROWS_AS(stft({2, 64}, 8).absent().host(scalar(length)).shape(), GraphError);
  CHECK_THROWS_AS(stft({2, 64}, 8).input({16}).host(scalar(15)).shape(), GraphError);
  CHECK_THROWS_AS(stft({2, 64}, 8).input({1, 16}).shape(), GraphError);
  CHECK_THROWS_AS(stft({64}, 8).input({16}).shape(), GraphError);
  CHECK_THROWS_AS(stft({2, 64}, 8).input({16}, DType::kFloat64).type(), GraphError);
}
