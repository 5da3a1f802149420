// The rules of the operators: output shapes, element types, and what malformed models are told.
#include <cmath>

#include "op_case.h"

namespace {

using asc::DType;
using asc::GraphError;
using asc::HostTensor;
using asc::Op;
using asc::OpKind;
using asc::OpRegistry;
using asc::Shape;
using asc::UnsupportedError;
using asc::test::Case;
using asc::test::Ints;
using asc::test::op;
using asc::test::scalar;
using doctest::Contains;

}  // namespace

TEST_CASE("every operator but control flow has both rules, and names are sorted and unique") {
  const auto names = OpRegistry::instance().names();
  CHECK(names.size() >= 120);
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) CHECK(names[i - 1] < names[i]);
    const Op& o = op(names[i]);
    CHECK((o.kind == OpKind::kControl) == (o.infer_shape == nullptr));
    CHECK((o.kind == OpKind::kControl) == (o.infer_dtype == nullptr));
  }
  CHECK(OpRegistry::instance().find("NoSuchOp") == nullptr);
  OpRegistry registry;
  asc::register_matmul_ops(registry);
  CHECK_THROWS_WITH_AS(asc::register_matmul_ops(registry), Contains("registered twice"), GraphError);
}

TEST_CASE("binary operators broadcast as NumPy does, empty dimensions included") {
  CHECK(Case("Add").input({2, 3}).input({2, 3}).shape() == "[2, 3]");
  CHECK(Case("Mul").input({2, 1, 3}).input({4, 1}).shape() == "[2, 4, 3]");
  CHECK(Case("Sub").input({}).input({0, 3}).shape() == "[0, 3]");
  CHECK(Case("Div").input({1}).input({0}).shape() == "[0]");
  CHECK(Case("Where").input({3, 1}, DType::kBool).input({4}).input({1, 1}).shape() == "[3, 4]");
  CHECK(Case("Max").input({2, 1}).input({3}).input({5, 1, 1}).shape() == "[5, 2, 3]");
}

TEST_CASE("shapes that do not broadcast are refused with node and values") {
  CHECK_THROWS_WITH_AS(Case("Add").input({2, 3}).input({4}).shape(),
                       "[infer_shape] Add 'n1': shapes [2, 3] and [4] do not broadcast; aligned dimensions must be "
                       "equal or 1",
                       GraphError);
  CHECK_THROWS_AS(Case("Add").input({0}).input({2}).shape(), GraphError);
  CHECK_THROWS_AS(Case("PRelu").input({2, 1}).input({2, 3}).shape(), GraphError);
}

TEST_CASE("a result too large for any memory is refused, not computed with overflow") {
  const int64_t big = int64_t{1} << 40;
  CHECK_THROWS_WITH_AS(Case("Add").input({big, 1}).input({1, big}).shape(), Contains("too large"), GraphError);
  CHECK_THROWS_AS(Case("Tile").input({big}).ints({big}).shape(), GraphError);
  CHECK_THROWS_AS(Case("ConstantOfShape").ints({big, big}).shape(), GraphError);
  CHECK_THROWS_AS(Case("Range").host(scalar(INT64_MIN)).host(scalar(INT64_MAX)).host(scalar(1)).shape(), GraphError);
}

TEST_CASE("mixed element types are refused with input and types") {
  CHECK_THROWS_WITH_AS(Case("Add").input({1}).input({1}, DType::kInt64).type(),
                       "[infer_dtype] Add 'n1': input 1 is int64 but input 0 is float32; insert a Cast", GraphError);
  CHECK(Case("Pow").input({1}).input({1}, DType::kInt64).type() == DType::kFloat32);
  CHECK_THROWS_AS(Case("Exp").input({1}, DType::kInt32).type(), GraphError);
  CHECK_THROWS_AS(Case("BitwiseAnd").input({1}).input({1}).type(), GraphError);
  CHECK_THROWS_AS(Case("Gather").input({4}).input({2}).type(), GraphError);
}

TEST_CASE("comparisons give bool, casts what they are told") {
  CHECK(Case("Less").input({1}).input({1}).type() == DType::kBool);
  CHECK(Case("Cast").set("to", int64_t{16}).input({1}).type() == DType::kBFloat16);
  CHECK(Case("CastLike").input({1}).input({1}, DType::kInt8).type() == DType::kInt8);
  CHECK(Case("ArgMax").input({1}).type() == DType::kInt64);
  CHECK_THROWS_AS(Case("Cast").set("to", int64_t{8}).input({1}).type(), UnsupportedError);
  CHECK_THROWS_AS(Case("Cast").input({1}).type(), GraphError);
}

TEST_CASE("missing inputs and unsupported outputs are refused before any shape is looked at") {
  CHECK_THROWS_WITH_AS(Case("Add").input({1}).type(), Contains("1 inputs; expected 2"), GraphError);
  CHECK_THROWS_WITH_AS(Case("Add").absent().input({1}).type(), Contains("input 0 is absent"), GraphError);
  CHECK_THROWS_AS(Case("Relu").input({1}).input({1}).type(), GraphError);
  CHECK_THROWS_AS(Case("MaxPool", 3).input({1, 1, 4}).type(), UnsupportedError);
}

TEST_CASE("MatMul handles vectors, batches and empty inner dimensions") {
  CHECK(Case("MatMul").input({2, 3}).input({3, 4}).shape() == "[2, 4]");
  CHECK(Case("MatMul").input({3}).input({3}).shape() == "[]");
  CHECK(Case("MatMul").input({3}).input({5, 3, 4}).shape() == "[5, 4]");
  CHECK(Case("MatMul").input({7, 1, 2, 3}).input({5, 3, 4}).shape() == "[7, 5, 2, 4]");
  CHECK(Case("MatMul").input({2, 0}).input({0, 4}).shape() == "[2, 4]");
  CHECK_THROWS_WITH_AS(Case("MatMul").input({2, 3}).input({4, 5}).shape(), Contains("inner dimensions 3 and 4"),
                       GraphError);
  CHECK_THROWS_AS(Case("MatMul").input({}).input({4}).shape(), GraphError);
}

TEST_CASE("Gemm transposes its operands and takes a C that broadcasts one way") {
  CHECK(Case("Gemm").set("transA", int64_t{1}).input({3, 2}).input({3, 4}).input({4}).shape() == "[2, 4]");
  CHECK_THROWS_AS(Case("Gemm").set("transB", int64_t{1}).input({2, 3}).input({3, 4}).shape(), GraphError);
  CHECK_THROWS_AS(Case("Gemm").input({1, 3}).input({3, 4}).input({2, 4}).shape(), GraphError);
}

TEST_CASE("reductions read axes from input 1 and know both meanings of none") {
  CHECK(Case("ReduceSum").input({2, 3, 4}).ints({-1, 0}).shape() == "[1, 3, 1]");
  CHECK(Case("ReduceMean").set("keepdims", int64_t{0}).input({2, 3}).shape() == "[]");
  CHECK(Case("ReduceMax").set("noop_with_empty_axes", int64_t{1}).input({2, 3}).ints({}).shape() == "[2, 3]");
  CHECK_THROWS_WITH_AS(Case("ReduceSum").input({2, 3}).ints({0, -2}).shape(), Contains("twice"), GraphError);
  CHECK_THROWS_AS(Case("ArgMax").input({0, 3}).shape(), GraphError);
  CHECK(Case("TopK", 2).input({2, 9}).ints({4}).shape(1) == "[2, 4]");
  CHECK_THROWS_AS(Case("TopK", 2).input({2, 9}).ints({10}).shape(), GraphError);
}

TEST_CASE("Conv checks channels, groups and windows") {
  CHECK(Case("Conv")
            .set("strides", Ints{2, 2})
            .set("pads", Ints{1, 1, 1, 1})
            .input({1, 3, 8, 9})
            .input({6, 3, 3, 3})
            .shape() == "[1, 6, 4, 5]");
  CHECK(Case("Conv").set("group", int64_t{3}).input({2, 3, 8}).input({6, 1, 3}).input({6}).shape() == "[2, 6, 6]");
  CHECK(Case("Conv")
            .set("auto_pad", std::string("SAME_UPPER"))
            .set("strides", Ints{2})
            .input({1, 1, 7})
            .input({1, 1, 4})
            .shape() == "[1, 1, 4]");
  CHECK_THROWS_AS(Case("Conv").input({1, 4, 8}).input({6, 3, 3}).shape(), GraphError);
  CHECK_THROWS_AS(Case("Conv").set("group", int64_t{0}).input({1, 3, 8}).input({6, 3, 3}).shape(), GraphError);
  CHECK_THROWS_AS(Case("Conv").input({1, 3, 2}).input({6, 3, 3}).shape(), GraphError);
  CHECK_THROWS_AS(Case("Conv").set("strides", Ints{0}).input({1, 3, 8}).input({6, 3, 3}).shape(), GraphError);
  CHECK_THROWS_AS(Case("Conv").set("pads", Ints{-1, 0}).input({1, 3, 8}).input({6, 3, 3}).shape(), GraphError);
  CHECK_THROWS_AS(Case("Conv").set("dilations", Ints{INT64_MAX}).input({1, 3, 8}).input({6, 3, 3}).shape(), GraphError);
  CHECK_THROWS_AS(Case("Conv").set("kernel_shape", Ints{5}).input({1, 3, 8}).input({6, 3, 3}).shape(), GraphError);
}

TEST_CASE("pooling with ceil_mode drops a window that would start behind the input") {
  const auto pool = [](int64_t dim, int64_t ceil_mode) {
    return Case("MaxPool")
        .set("kernel_shape", Ints{2})
        .set("strides", Ints{3})
        .set("ceil_mode", ceil_mode)
        .input({1, 1, dim})
        .shape();
  };
  CHECK(pool(7, 0) == "[1, 1, 2]");
  CHECK(pool(7, 1) == "[1, 1, 3]");
  CHECK(pool(6, 1) == "[1, 1, 2]");
  CHECK_THROWS_AS(Case("AveragePool").input({1, 1, 4}).shape(), GraphError);
  CHECK_THROWS_AS(Case("AveragePool").set("kernel_shape", Ints{2}).set("pads", Ints{2, 0}).input({1, 1, 4}).shape(),
                  GraphError);
  CHECK(Case("GlobalAveragePool").input({2, 3, 4, 5}).shape() == "[2, 3, 1, 1]");
}

TEST_CASE("normalisations compare their parameters with the input") {
  CHECK(Case("LayerNormalization").input({2, 3, 4}).input({4}).input({4}).shape() == "[2, 3, 4]");
  CHECK(Case("RMSNormalization").set("axis", int64_t{1}).input({2, 3, 4}).input({1, 3, 4}).shape() == "[2, 3, 4]");
  CHECK_THROWS_AS(Case("LayerNormalization").input({2, 3, 4}).input({3}).shape(), GraphError);
  CHECK_THROWS_AS(Case("LayerNormalization").input({2, 3, 4}).input({1}).shape(), UnsupportedError);
  Case norm("BatchNormalization");
  CHECK(norm.input({2, 3}).input({3}).input({3}).input({3}).input({3}).shape() == "[2, 3]");
  CHECK_THROWS_AS(norm.set("training_mode", int64_t{1}).shape(), UnsupportedError);
}

TEST_CASE("LSTM gives its three outputs for every direction") {
  const auto lstm = [](const std::string& direction, int64_t d) {
    return Case("LSTM", 3)
        .set("direction", direction)
        .set("hidden_size", int64_t{5})
        .input({7, 2, 3})
        .input({d, 20, 3})
        .input({d, 20, 5})
        .absent()
        .absent()
        .input({d, 2, 5});
  };
  CHECK(lstm("forward", 1).shape(0) == "[7, 1, 2, 5]");
  CHECK(lstm("bidirectional", 2).shape(0) == "[7, 2, 2, 5]");
  CHECK(lstm("reverse", 1).shape(2) == "[1, 2, 5]");
  CHECK(lstm("forward", 1).type(1) == DType::kFloat32);
  CHECK_THROWS_WITH_AS(lstm("bidirectional", 1).shape(), Contains("expected [2, 20, 3]"), GraphError);
  CHECK_THROWS_AS(lstm("forward", 1).set("layout", int64_t{1}).shape(), UnsupportedError);
}

TEST_CASE("generators follow shapes and host values") {
  CHECK(Case("Shape").set("start", int64_t{-2}).input({2, 3, 4}).shape() == "[2]");
  CHECK(Case("Size").input({2, 3}).shape() == "[]");
  CHECK(Case("ConstantOfShape").ints({2, 0}).shape() == "[2, 0]");
  CHECK(Case("ConstantOfShape").ints({2}).type() == DType::kFloat32);
  CHECK(Case("Range").host(scalar(10)).host(scalar(0)).host(scalar(-3)).shape() == "[4]");
  CHECK_THROWS_AS(Case("Range").host(scalar(1)).host(scalar(0)).host(scalar(0)).shape(), GraphError);
  CHECK(Case("OneHot").set("axis", int64_t{0}).input({2, 3}, DType::kInt64).host(scalar(4)).input({2}).shape() ==
        "[4, 2, 3]");
  CHECK_THROWS_AS(Case("ConstantOfShape").ints({-1}).shape(), GraphError);
}

TEST_CASE("a float Range counts as its rounded operands say") {
  const auto range = [](float start, float limit, float delta) {
    Case c("Range");
    for (float v : {start, limit, delta}) c.host(HostTensor::from(DType::kFloat32, Shape(), std::vector<float>{v}));
    return c.shape();
  };
  CHECK(range(0, 1, 0.25f) == "[4]");
  CHECK(range(1, 0, 0.25f) == "[0]");
  CHECK_THROWS_AS(range(0, INFINITY, 1), GraphError);
  CHECK_THROWS_AS(range(0, 1, NAN), GraphError);
  CHECK_THROWS_AS(range(0, 1, 0), GraphError);
}

TEST_CASE("data dependent operators give an upper bound") {
  CHECK(op("NonZero").kind == OpKind::kDataDependent);
  CHECK(Case("NonZero").input({2, 3}).shape() == "[2, 6]");
  CHECK(Case("Compress").input({2, 3}).input({9}, DType::kBool).shape() == "[6]");
  CHECK(Case("Compress").set("axis", int64_t{1}).input({2, 3}).input({2}, DType::kBool).shape() == "[2, 2]");
}

TEST_CASE("Dropout is a view for inference and refuses training") {
  const auto dropout = [](bool training) {
    HostTensor flag = HostTensor::allocate(DType::kBool, Shape());
    *static_cast<bool*>(flag.mutable_data()) = training;
    return Case("Dropout").input({2}).absent().host(flag).shape();
  };
  CHECK(op("Dropout").kind == OpKind::kView);
  CHECK(dropout(false) == "[2]");
  CHECK_THROWS_AS(dropout(true), UnsupportedError);
}
