// The rules of the operators that move data: reshaping, cutting, joining and indexing.
#include <algorithm>

#include "op_case.h"
#include "ops/infer.h"

namespace {

using asc::DType;
using asc::GraphError;
using asc::HostTensor;
using asc::Shape;
using asc::UnsupportedError;
using asc::test::Case;
using asc::test::Ints;
using doctest::Contains;

}  // namespace

TEST_CASE("Reshape copies, infers, and refuses what does not fit") {
  CHECK(Case("Reshape").input({2, 3, 4}).ints({0, -1}).shape() == "[2, 12]");
  CHECK(Case("Reshape").input({0, 3}).ints({3, 0, 1}).set("allowzero", int64_t{1}).shape() == "[3, 0, 1]");
  CHECK(Case("Reshape").input({1}).ints({}).shape() == "[]");
  CHECK_THROWS_WITH_AS(Case("Reshape").input({2, 3}).ints({4, 2}).shape(), Contains("6 elements"), GraphError);
  CHECK_THROWS_AS(Case("Reshape").input({2, 3}).ints({-1, -1}).shape(), GraphError);
  CHECK_THROWS_AS(Case("Reshape").input({2, 3}).ints({-1, 4}).shape(), GraphError);
  CHECK_THROWS_AS(Case("Reshape").input({0}).ints({-1, 0}).set("allowzero", int64_t{1}).shape(), GraphError);
  CHECK_THROWS_AS(Case("Reshape").input({6}).ints({1, 1, 0}).shape(), GraphError);
  CHECK_THROWS_AS(Case("Reshape").input({6}).ints({-2, -3}).shape(), GraphError);
  CHECK_THROWS_AS(Case("Reshape").input({1}).ints(Ints(9, 1)).shape(), UnsupportedError);
}

TEST_CASE("a host value that is needed and unknown, or of a wrong type, is an error") {
  CHECK_THROWS_WITH_AS(Case("Reshape").input({6}).input({2}, DType::kInt64).shape(), Contains("not known on the host"),
                       GraphError);
  const HostTensor floats = HostTensor::from(DType::kFloat32, Shape{1}, std::vector<float>{6});
  CHECK_THROWS_AS(Case("Reshape").input({6}).host(floats).shape(), GraphError);
  CHECK(
      Case("Reshape").input({6}).host(HostTensor::from(DType::kInt32, Shape{2}, std::vector<int32_t>{3, 2})).shape() ==
      "[3, 2]");
}

TEST_CASE("Squeeze and Unsqueeze take negative axes and refuse repeated ones") {
  CHECK(Case("Squeeze").input({1, 3, 1}).shape() == "[3]");
  CHECK(Case("Squeeze").input({1, 3, 1}).ints({-1}).shape() == "[1, 3]");
  CHECK(Case("Unsqueeze").input({3}).ints({0, -1}).shape() == "[1, 3, 1]");
  CHECK_THROWS_AS(Case("Squeeze").input({1, 3}).ints({1}).shape(), GraphError);
  CHECK_THROWS_AS(Case("Unsqueeze").input({3}).ints({0, -3}).shape(), GraphError);
  CHECK_THROWS_AS(Case("Unsqueeze").input({3}).ints({4}).shape(), GraphError);
}

TEST_CASE("Flatten splits at every axis, the rank included") {
  CHECK(Case("Flatten").input({2, 3, 4}).shape() == "[2, 12]");
  CHECK(Case("Flatten").input({2, 3, 4}).set("axis", int64_t{3}).shape() == "[24, 1]");
  CHECK(Case("Flatten").input({}).set("axis", int64_t{0}).shape() == "[1, 1]");
  CHECK_THROWS_AS(Case("Flatten").input({2}).set("axis", int64_t{2}).shape(), GraphError);
}

TEST_CASE("Transpose reverses by default and refuses what is no permutation") {
  CHECK(Case("Transpose").input({2, 3, 4}).shape() == "[4, 3, 2]");
  CHECK(Case("Transpose").input({2, 3, 4}).set("perm", Ints{1, 0, 2}).shape() == "[3, 2, 4]");
  for (const Ints& perm : {Ints{0, 0, 1}, Ints{0, 1}, Ints{0, 1, 3}, Ints{-1, 0, 1}})
    CHECK_THROWS_AS(Case("Transpose").input({2, 3, 4}).set("perm", perm).shape(), GraphError);
}

TEST_CASE("Concat adds along its axis and compares the others") {
  CHECK(Case("Concat").set("axis", int64_t{-1}).input({2, 3}).input({2, 0}).input({2, 4}).shape() == "[2, 7]");
  CHECK_THROWS_AS(Case("Concat").set("axis", int64_t{1}).input({2, 3}).input({3, 3}).shape(), GraphError);
  CHECK_THROWS_AS(Case("Concat").input({2, 3}).input({2, 3}).type(), GraphError);
}

TEST_CASE("Split follows sizes, or makes equal parts of which the last is smaller") {
  CHECK(Case("Split", 3).input({7}).shape(2) == "[1]");
  CHECK(Case("Split", 2).input({7}).ints({7, 0}).shape(1) == "[0]");
  CHECK_THROWS_AS(Case("Split", 2).input({7}).ints({3, 3}).shape(), GraphError);
  CHECK_THROWS_AS(Case("Split", 2).input({7}).ints({8, -1}).shape(), GraphError);
  CHECK_THROWS_AS(Case("Split", 2).input({7}).set("num_outputs", int64_t{3}).shape(), GraphError);
}

TEST_CASE("Slice clamps and steps both ways, up to the extremes of int64") {
  const auto slice = [](int64_t start, int64_t end, int64_t step) {
    return Case("Slice").input({10}).ints({start}).ints({end}).ints({0}).ints({step}).shape();
  };
  CHECK(slice(2, -1, 1) == "[7]");
  CHECK(slice(-100, INT64_MAX, 3) == "[4]");
  CHECK(slice(INT64_MAX, INT64_MIN, -1) == "[10]");
  CHECK(slice(5, 2, 1) == "[0]");
  CHECK(slice(9, 0, INT64_MIN) == "[1]");
  CHECK_THROWS_WITH_AS(slice(0, 1, 0), Contains("step"), GraphError);
  CHECK_THROWS_AS(Case("Slice").input({4, 4}).ints({0, 0}).ints({1, 1}).ints({0, -2}).shape(), GraphError);
  CHECK_THROWS_AS(Case("Slice").input({4}).ints({0}).ints({1, 1}).shape(), GraphError);
}

TEST_CASE("the gathers join index and data dimensions") {
  CHECK(Case("Gather").set("axis", int64_t{1}).input({2, 5, 3}).input({4, 1}, DType::kInt64).shape() == "[2, 4, 1, 3]");
  CHECK(Case("GatherND").set("batch_dims", int64_t{1}).input({2, 5, 3}).input({2, 4, 1}, DType::kInt64).shape() ==
        "[2, 4, 3]");
  CHECK(Case("GatherElements").input({2, 5}).input({7, 3}, DType::kInt64).shape() == "[7, 3]");
  CHECK_THROWS_AS(Case("GatherElements").input({2, 5}).input({2, 6}, DType::kInt64).shape(), GraphError);
  CHECK_THROWS_AS(Case("GatherND").input({2}).input({1, 2}, DType::kInt64).shape(), GraphError);
  CHECK_THROWS_AS(Case("Gather").input({}).input({1}, DType::kInt64).shape(), GraphError);
  CHECK_THROWS_AS(Case("Gather").input({1, 1, 1, 1, 1}).input({1, 1, 1, 1, 1}, DType::kInt64).shape(),
                  UnsupportedError);
}

TEST_CASE("the scatters compare updates with indices and data") {
  CHECK(Case("ScatterND").input({4, 3}).input({2, 1}, DType::kInt64).input({2, 3}).shape() == "[4, 3]");
  CHECK_THROWS_AS(Case("ScatterND").input({4, 3}).input({2, 1}, DType::kInt64).input({2, 4}).shape(), GraphError);
  CHECK_THROWS_AS(Case("ScatterElements").input({4}).input({2}, DType::kInt64).input({3}).shape(), GraphError);
  CHECK_THROWS_AS(
      Case("ScatterND").set("reduction", std::string("sum")).input({4}).input({1, 1}, DType::kInt64).input({1}).shape(),
      GraphError);
}

TEST_CASE("Expand, Tile and Pad grow shapes within reason") {
  CHECK(Case("Expand").input({3, 1}).ints({2, 1, 4}).shape() == "[2, 3, 4]");
  CHECK(Case("Expand").input({1}).ints({0}).shape() == "[0]");
  CHECK(Case("Tile").input({2, 3}).ints({0, 2}).shape() == "[0, 6]");
  CHECK(Case("Pad").input({4, 4}).ints({1, -1}).absent().ints({-1}).shape() == "[4, 4]");
  CHECK_THROWS_AS(Case("Expand").input({3}).ints({2}).shape(), GraphError);
  CHECK_THROWS_AS(Case("Tile").input({2}).ints({-1}).shape(), GraphError);
  CHECK_THROWS_AS(Case("Pad").input({2}).ints({-2, -1}).shape(), GraphError);
  CHECK_THROWS_AS(Case("Pad").set("mode", std::string("edge")).input({0}).ints({1, 0}).shape(), GraphError);
}

namespace {

// Unlike NumPy, a negative step whose start lies before the axis begins with its first element.
int64_t count_by_enumeration(int64_t start, int64_t end, int64_t step, int64_t dim) {
  if (start < 0) start += dim;
  if (end < 0) end += dim;
  int64_t count = 0;
  if (step > 0) {
    for (int64_t i = std::max<int64_t>(start, 0); i < std::min(end, dim); i += step) ++count;
  } else if (dim > 0) {
    for (int64_t i = std::clamp<int64_t>(start, 0, dim - 1); i > std::max<int64_t>(end, -1); i += step) ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("a slice range counts what ONNX's clamping enumerates") {
  for (int64_t dim = 0; dim <= 5; ++dim) {
    for (int64_t start = -7; start <= 7; ++start) {
      for (int64_t end = -7; end <= 7; ++end) {
        for (int64_t step : {1, 2, 3, -1, -2, -7}) {
          CAPTURE(asc::message(start, ":", end, ":", step, " of ", dim));
          CHECK(asc::slice_range(start, end, step, dim).count == count_by_enumeration(start, end, step, dim));
        }
      }
    }
  }
}
