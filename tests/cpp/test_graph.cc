// The graph: attributes, types, and what validation refuses.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/graph.h"

namespace {

using asc::Attributes;
using asc::DType;
using asc::Graph;
using asc::GraphError;
using asc::HostTensor;
using asc::kNoValue;
using asc::Node;
using asc::Shape;
using asc::ValueId;
using doctest::Contains;

ValueId value(Graph& g, const std::string& name) {
  asc::Value v;
  v.name = name;
  return g.add_value(std::move(v));
}

ValueId input(Graph& g, const std::string& name) {
  const ValueId v = value(g, name);
  g.add_input(v);
  return v;
}

Node& node(Graph& g, const std::string& name, std::vector<ValueId> inputs, std::vector<ValueId> outputs) {
  Node n;
  n.name = name;
  n.op = "Relu";
  n.inputs = std::move(inputs);
  n.outputs = std::move(outputs);
  return g.nodes()[g.add_node(std::move(n))];
}

std::string order(const Graph& g) {
  std::string s;
  for (const Node& n : g.nodes()) s += n.name;
  return s;
}

// x -> relu -> y, closed.
std::shared_ptr<Graph> small_body() {
  auto body = std::make_shared<Graph>();
  const ValueId x = input(*body, "x"), y = value(*body, "y");
  node(*body, "inner", {x}, {y});
  body->add_output(y);
  return body;
}

}  // namespace

TEST_CASE("attributes stay sorted, are replaced by name, and print the same for any order of setting") {
  Attributes a, b;
  a.set("beta", 0.1);
  a.set("alpha", std::vector<int64_t>{1, 2});
  a.set("mode", std::string("say \"x\""));
  b.set("mode", std::string("say \"x\""));
  b.set("beta", 7.0);
  b.set("alpha", std::vector<int64_t>{1, 2});
  CHECK_FALSE(a.same_value(b));
  b.set("beta", 0.1);
  CHECK(a.same_value(b));
  CHECK(a.text() == "{alpha=[1, 2], beta=0.1, mode=\"say \\\"x\\\"\"}");
  CHECK(a.text() == b.text());
  CHECK(Attributes().text() == "{}");
}

TEST_CASE("getters fall back when absent and refuse another type") {
  Attributes a;
  a.set("axis", int64_t{3});
  CHECK(a.get_int("axis", 0) == 3);
  CHECK(a.get_int("axes", 7) == 7);
  CHECK(a.get_ints("perm").empty());
  CHECK_FALSE(a.get_tensor("value"));
  CHECK(a.get_string("mode", "constant") == "constant");
  CHECK_THROWS_WITH_AS(a.get_ints("axis"),
                       "[attribute] 'axis' is an int, expected a list of ints; correct the node that carries it",
                       GraphError);
  CHECK_THROWS_AS(a.get_graph("body"), GraphError);
}

TEST_CASE("attribute values compare by bits and by tensor contents, bodies by structure") {
  Attributes a, b;
  a.set("f", -0.0);
  b.set("f", 0.0);
  CHECK_FALSE(a.same_value(b));
  a.set("f", std::nan(""));
  b.set("f", std::nan(""));
  CHECK(a.same_value(b));
  a.set("t", HostTensor::from(DType::kInt32, Shape{2}, std::vector<int32_t>{1, 2}));
  b.set("t", HostTensor::from(DType::kInt32, Shape{2}, std::vector<int32_t>{1, 2}));
  CHECK(a.same_value(b));
  CHECK(a.text() == b.text());
  a.set("body", small_body());
  b.set("body", small_body());
  CHECK(a.same_value(b));
  b.set("body", std::make_shared<Graph>());
  CHECK_FALSE(a.same_value(b));
}

TEST_CASE("types print numbers, symbols and unknowns") {
  asc::TensorType t;
  t.dtype = DType::kFloat32;
  CHECK(t.text() == "float32[...]");
  CHECK_FALSE(t.is_static());
  t.has_rank = true;
  t.dims = {asc::Dim{-1, "batch"}, asc::Dim{3, ""}, asc::Dim{}};
  CHECK(t.text() == "float32[batch, 3, ?]");
  CHECK_FALSE(t.is_static());
  t.dims = {asc::Dim{2, ""}};
  CHECK(t.is_static());
}

TEST_CASE("a constant carries its type") {
  Graph g;
  const ValueId c = g.add_constant("c", HostTensor::allocate(DType::kInt64, Shape{2, 3}));
  CHECK(g.value(c).type.text() == "int64[2, 3]");
  CHECK(static_cast<bool>(g.value(c).constant));
}

TEST_CASE("a sorted graph keeps its order, an unsorted one changes as little as possible") {
  Graph g;
  const ValueId x = input(g, "x"), a = value(g, "a"), b = value(g, "b"), c = value(g, "c");
  node(g, "3", {a, b}, {c});
  node(g, "1", {x, kNoValue}, {a});
  node(g, "2", {x}, {b});
  g.add_output(c);
  g.validate_and_sort();
  CHECK(order(g) == "123");
  g.validate_and_sort();
  CHECK(order(g) == "123");
}

TEST_CASE("an id outside the graph is refused with the node's name") {
  Graph g;
  const ValueId x = input(g, "x"), y = value(g, "y");
  node(g, "bad", {x, 77}, {y});
  CHECK_THROWS_WITH_AS(g.validate_and_sort(), Contains("node 'bad' (Relu) has value id 77"), GraphError);
  g.nodes()[0].inputs = {x};
  g.nodes()[0].outputs = {-5};
  CHECK_THROWS_AS(g.validate_and_sort(), GraphError);
  Graph h;
  h.add_input(0);
  CHECK_THROWS_AS(h.validate_and_sort(), GraphError);
  Graph k;
  k.add_output(kNoValue);
  CHECK_THROWS_AS(k.validate_and_sort(), GraphError);
}

TEST_CASE("a value has exactly one source") {
  Graph g;
  const ValueId x = input(g, "x"), y = value(g, "y");
  const ValueId c = g.add_constant("c", HostTensor::allocate(DType::kFloat32, Shape{1}));
  node(g, "first", {x}, {y});
  Node& second = node(g, "second", {x}, {y});
  CHECK_THROWS_WITH_AS(g.validate_and_sort(), Contains("value 'y' is produced twice, by node 'first'"), GraphError);
  second.outputs = {x};
  CHECK_THROWS_WITH_AS(g.validate_and_sort(), Contains("also a graph input"), GraphError);
  second.outputs = {c};
  CHECK_THROWS_WITH_AS(g.validate_and_sort(), Contains("also a constant"), GraphError);
  second.outputs = {kNoValue};
  g.validate_and_sort();
  g.add_input(x);
  CHECK_THROWS_WITH_AS(g.validate_and_sort(), Contains("input twice"), GraphError);
}

TEST_CASE("a value that nobody computes is refused where it is used") {
  Graph g;
  const ValueId ghost = value(g, "ghost"), y = value(g, "y");
  node(g, "reader", {ghost}, {y});
  CHECK_THROWS_WITH_AS(g.validate_and_sort(), Contains("value 'ghost', read by node 'reader' (Relu), has no producer"),
                       GraphError);
  Graph h;
  h.add_output(value(h, "result"));
  CHECK_THROWS_WITH_AS(h.validate_and_sort(), Contains("graph output value 'result' has no producer"), GraphError);
}

TEST_CASE("a cycle is named node by node, without the nodes behind it") {
  Graph g;
  const ValueId x = input(g, "x"), a = value(g, "a"), b = value(g, "b"), c = value(g, "c");
  node(g, "behind", {b}, {c});
  node(g, "p", {x, b}, {a});
  node(g, "q", {a}, {b});
  try {
    g.validate_and_sort();
    FAIL("the cycle was not found");
  } catch (const GraphError& e) {
    const std::string what = e.what();
    CHECK(what.find("cycle through 2 node(s)") != std::string::npos);
    CHECK(what.find("node 'p'") != std::string::npos);
    CHECK(what.find("node 'q'") != std::string::npos);
    CHECK(what.find("behind") == std::string::npos);
  }
  Graph self;
  const ValueId y = value(self, "y");
  node(self, "loop", {y}, {y});
  CHECK_THROWS_WITH_AS(self.validate_and_sort(), Contains("cycle through 1 node(s)"), GraphError);
}

TEST_CASE("bodies are validated and sorted too") {
  auto body = small_body();
  const ValueId z = value(*body, "z"), y = body->outputs()[0];
  node(*body, "outer", {z}, {value(*body, "w")});
  node(*body, "middle", {y}, {z});
  Graph g;
  const ValueId x = input(g, "x"), out = value(g, "out");
  node(g, "if", {x}, {out}).attributes.set("then_branch", body);
  g.validate_and_sort();
  CHECK(order(*body) == "innermiddleouter");
  body->nodes()[0].inputs = {99};
  CHECK_THROWS_WITH_AS(g.validate_and_sort(), Contains("node 'inner'"), GraphError);
}

TEST_CASE("a body that is missing, contains itself or is nested too deep is refused") {
  Graph g;
  const ValueId x = input(g, "x"), out = value(g, "out");
  node(g, "if", {x}, {out}).attributes.set("then_branch", std::shared_ptr<Graph>());
  CHECK_THROWS_WITH_AS(g.validate_and_sort(), Contains("body 'then_branch' of node 'if' (Relu) is empty"), GraphError);

  auto body = small_body();
  body->nodes()[0].attributes.set("body", body);
  g.nodes()[0].attributes.set("then_branch", body);
  CHECK_THROWS_WITH_AS(g.validate_and_sort(), Contains("contains itself"), GraphError);
  body->nodes()[0].attributes.set("body", int64_t{0});

  auto deep = small_body();
  for (int i = 0; i < 100; ++i) {
    auto around = small_body();
    around->nodes()[0].attributes.set("body", deep);
    deep = around;
  }
  g.nodes()[0].attributes.set("then_branch", deep);
  CHECK_THROWS_WITH_AS(g.validate_and_sort(), Contains("nested deeper"), GraphError);
}

TEST_CASE("a body shared by many nodes is visited once, so nesting cannot explode") {
  auto body = small_body();
  for (int i = 0; i < 40; ++i) {
    auto around = small_body();
    around->nodes()[0].attributes.set("a", body);
    around->nodes()[0].attributes.set("b", body);
    body = around;
  }
  Graph g;
  const ValueId x = input(g, "x"), out = value(g, "out");
  node(g, "if", {x}, {out}).attributes.set("then_branch", body);
  g.validate_and_sort();
  CHECK(g.nodes().size() == 1);
}
