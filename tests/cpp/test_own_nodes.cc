// Nodes of our own in the graph of a saved file: taken where all fits, refused where anything does not.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/serialize.h"
#include "plan/plan.h"

namespace {

using asc::DType;
using asc::Graph;
using asc::HostTensor;
using asc::kNoValue;
using asc::Node;
using asc::OwnNode;
using asc::Shape;
using asc::ValueId;

ValueId add(Graph& g, const char* name, DType type = DType::kUndefined) {
  asc::Value v;
  v.name = name;
  v.type.dtype = type;
  return g.add_value(v);
}

ValueId number(Graph& g, float value) {
  return g.add_constant("number", HostTensor::from<float>(DType::kFloat32, Shape{}, {value}));
}

Node node(const char* op, std::vector<ValueId> inputs, ValueId output) {
  Node n;
  n.name = n.op = op;
  n.inputs = std::move(inputs);
  n.outputs = {output};
  return n;
}

Graph rewritten() {
  Graph g;
  g.name = "g";
  g.is_rewritten = true;
  return g;
}

// DequantizeLinear(x) * DequantizeLinear(w), and the node that stands for it.
Graph quantized_product() {
  Graph g = rewritten();
  const ValueId x = add(g, "x", DType::kUInt8);
  g.add_input(x);
  const ValueId w = g.add_constant("w", HostTensor::from<int8_t>(DType::kInt8, Shape{2, 3}, {1, 2, 3, 4, 5, 6}));
  const ValueId scale = number(g, 0.5f),
                zero = g.add_constant("zero", HostTensor::from<uint8_t>(DType::kUInt8, {}, {3}));
  const ValueId x_real = add(g, "x_real"), w_real = add(g, "w_real"), y = add(g, "y", DType::kFloat32);
  g.add_node(node("DequantizeLinear", {x, scale, zero}, x_real));
  g.add_node(node("DequantizeLinear", {w, scale}, w_real));
  g.add_node(node("MatMul", {x_real, w_real}, y));
  g.add_output(y);
  const ValueId product = number(g, 0.25f);
  g.own_nodes.push_back({0, 3, node("QuantizedMatMul", {x, w, zero, kNoValue, product}, y)});
  return g;
}

// A node on channels last, between the parts that it stands for.
Graph pooling(const char* op = "PoolLast", DType type = DType::kFloat32) {
  Graph g = rewritten();
  const ValueId x = add(g, "x", type), first = add(g, "first"), pooled = add(g, "pooled"), y = add(g, "y", type);
  g.add_input(x);
  g.add_node(node("Transpose", {x}, first));
  g.nodes().back().attributes.set("perm", std::vector<int64_t>{0, 3, 1, 2});
  g.add_node(node("GlobalAveragePool", {first}, pooled));
  g.add_node(node("Transpose", {pooled}, y));
  g.nodes().back().attributes.set("perm", std::vector<int64_t>{0, 2, 3, 1});
  g.add_output(y);
  g.own_nodes.push_back({0, 3, node(op, {x}, y)});
  g.own_nodes[0].node.attributes.set("mode", std::string("global"));
  return g;
}

Graph convolution() {
  Graph g = rewritten();
  const ValueId x = add(g, "x", DType::kFloat32), y = add(g, "y", DType::kFloat32);
  g.add_input(x);
  const HostTensor w = HostTensor::from(DType::kFloat32, Shape{2, 1, 1, 1}, std::vector<float>{1, 2});
  const HostTensor bias = HostTensor::from(DType::kFloat32, Shape{2}, std::vector<float>{3, 4});
  g.add_node(node("Conv", {x, g.add_constant("w", w), g.add_constant("bias", bias)}, y));
  g.add_output(y);
  g.own_nodes.push_back({0, 1, node("ConvLast", {x, 2, 3}, y)});
  return g;
}

Graph half_product() {
  Graph g = rewritten();
  const ValueId x = add(g, "x", DType::kFloat32), wide = add(g, "wide"), y = add(g, "y", DType::kFloat32);
  g.add_input(x);
  const ValueId w = g.add_constant("w", HostTensor::allocate(DType::kBFloat16, Shape{2, 2}));
  g.add_node(node("Cast", {w}, wide));
  g.nodes().back().attributes.set("to", int64_t{1});
  g.add_node(node("MatMul", {x, wide}, y));
  g.add_output(y);
  g.own_nodes.push_back({0, 2, node("MatMulBFloat16", {x, w}, y)});
  return g;
}

std::string text_of(const Graph& g, bool fuse = true) {
  asc::CompileOptions options;
  options.fuse = fuse;
  return asc::compile_plan(g, options)->text();
}

void check_refused(Graph g, const std::function<void(Graph&, OwnNode&)>& change) {
  change(g, g.own_nodes[0]);
  CHECK_THROWS_AS(text_of(g), asc::Error);
  const asc::GraphBytes bytes = asc::serialize(g);  // whoever writes it
  CHECK(!bytes.structure.empty());
}

TEST_CASE("a node of our own is taken for what it stands for") {
  CHECK(text_of(quantized_product()).find("task QuantizedMatMul") != std::string::npos);
  CHECK(text_of(pooling()).find("task PoolLast") != std::string::npos);
  CHECK(text_of(convolution()).find("task ConvLast") != std::string::npos);
  CHECK(text_of(half_product()).find("task MatMulBFloat16") != std::string::npos);
}

TEST_CASE("options that it does not suit compile what it stands for") {
  CHECK(text_of(quantized_product(), false).find("task MatMul") != std::string::npos);
  Graph g = quantized_product();
  g.is_channels_last = true;
  CHECK(text_of(g).find("task QuantizedMatMul") != std::string::npos);  // made again
  g = quantized_product();
  g.is_rewritten = false;
  CHECK(text_of(g).find("'QuantizedMatMul'") == std::string::npos);  // it is called by what it is made of
}

TEST_CASE("models cannot name its operator") {
  Graph g = pooling();
  g.own_nodes.clear();
  g.add_node(node("PoolLast", {0}, add(g, "z")));
  CHECK_THROWS_AS(text_of(g), asc::UnsupportedError);
}

TEST_CASE("nodes that it does not stand for are refused") {
  for (const auto& graph : {quantized_product(), pooling(), half_product()}) {
    check_refused(graph, [](Graph&, OwnNode& own) { own.count = 0; });
    check_refused(graph, [](Graph&, OwnNode& own) { own.count = 9; });
    check_refused(graph, [](Graph&, OwnNode& own) { own.count = UINT32_MAX; });
    check_refused(graph, [](Graph&, OwnNode& own) { own.first = UINT32_MAX; });
    check_refused(graph, [](Graph&, OwnNode& own) { own.count -= 1; });  // the result is computed twice
    check_refused(graph, [](Graph& g, OwnNode& own) { g.own_nodes.push_back(OwnNode(own)); });
    check_refused(graph, [](Graph& g, OwnNode&) { std::swap(g.nodes()[0], g.nodes().back()); });
  }
}

TEST_CASE("values that are not there, or not yet, are refused") {
  for (const auto& graph : {quantized_product(), pooling(), half_product()}) {
    for (const ValueId v : {-2, 99, INT32_MAX, INT32_MIN}) {
      check_refused(graph, [v](Graph&, OwnNode& own) { own.node.inputs[0] = v; });
      check_refused(graph, [v](Graph&, OwnNode& own) { own.node.outputs[0] = v; });
    }
    check_refused(graph, [](Graph&, OwnNode& own) { own.node.inputs[0] = kNoValue; });
    check_refused(graph, [](Graph&, OwnNode& own) { own.node.outputs[0] = kNoValue; });
    check_refused(graph, [](Graph&, OwnNode& own) { own.node.outputs.push_back(0); });
    check_refused(graph, [](Graph&, OwnNode& own) { own.node.outputs.clear(); });
    check_refused(graph, [](Graph&, OwnNode& own) { own.node.outputs[0] = own.node.inputs[0]; });
    check_refused(graph, [](Graph&, OwnNode& own) { own.node.inputs[0] = own.node.outputs[0]; });
    check_refused(graph, [](Graph& g, OwnNode& own) { own.node.inputs[0] = g.nodes()[0].outputs[0]; });  // left out
    check_refused(graph, [](Graph& g, OwnNode&) { g.add_output(g.nodes()[0].outputs[0]); });
    check_refused(graph, [](Graph&, OwnNode& own) { own.node.op = "Fused"; });
    check_refused(graph, [](Graph&, OwnNode& own) { own.node.inputs.resize(20, kNoValue); });
  }
}

TEST_CASE("operands of products of bytes that do not fit are refused") {
  const auto set = [](size_t input, ValueId (*make)(Graph&)) {
    check_refused(quantized_product(), [=](Graph& g, OwnNode& own) {
      own.node.inputs.resize(8, kNoValue);
      own.node.inputs[input] = make(g);
    });
  };
  const auto floats = [](Graph& g) { return number(g, 1); };
  const auto bytes = [](Graph& g) {
    return g.add_constant("bytes", HostTensor::from<int8_t>(DType::kInt8, Shape{1}, {1}));
  };
  const auto none = [](Graph&) { return kNoValue; };
  const auto no_weights = [](Graph& g) {
    return g.add_constant("empty", HostTensor::allocate(DType::kInt8, Shape{2, 0}));
  };
  set(0, floats);
  set(1, floats);
  set(1, no_weights);
  set(2, floats);
  set(2, bytes);  // x is unsigned
  set(3, floats);
  set(4, none);
  set(4, bytes);
  set(5, bytes);
  set(6, floats);  // rounded, but y is float32
  set(7, bytes);   // without a scale
  check_refused(quantized_product(), [](Graph& g, OwnNode&) { g.value(g.outputs()[0]).type.dtype = DType::kInt64; });
  check_refused(quantized_product(), [](Graph& g, OwnNode&) { g.value(g.outputs()[0]).type.dtype = DType::kInt8; });
  check_refused(quantized_product(), [](Graph&, OwnNode& own) { own.node.attributes.set("low", std::string("text")); });
  check_refused(quantized_product(), [](Graph&, OwnNode& own) { own.node.op = "QuantizedConv"; });  // of rank 2
}

TEST_CASE("operands of other nodes that do not fit are refused") {
  const auto set_mode = [](const char* mode) {
    return [mode](Graph&, OwnNode& own) { own.node.attributes.set("mode", std::string(mode)); };
  };
  check_refused(pooling(), set_mode("mean"));
  check_refused(pooling(), [](Graph&, OwnNode& own) { own.node.attributes.set("mode", int64_t{1}); });
  check_refused(pooling("PoolLast", DType::kFloat64), [](Graph&, OwnNode&) {});
  check_refused(pooling("PoolLast", DType::kUInt8), [](Graph&, OwnNode&) {});
  check_refused(pooling("BytePool", DType::kFloat32), [](Graph&, OwnNode&) {});
  check_refused(pooling("BytePool", DType::kUInt8), [](Graph&, OwnNode&) {});  // an average has scales
  check_refused(pooling("BytePool", DType::kUInt8), [](Graph& g, OwnNode& own) {
    own.node.inputs = {0, number(g, 1), kNoValue, add(g, "scale", DType::kFloat32)};
    g.add_input(own.node.inputs[3]);
  });
  check_refused(convolution(), [](Graph& g, OwnNode& own) {
    own.node.inputs[2] = g.add_constant("long", HostTensor::allocate(DType::kFloat32, Shape{3}));
  });
  check_refused(convolution(), [](Graph& g, OwnNode& own) {
    own.node.inputs[1] = g.add_constant("flat", HostTensor::allocate(DType::kFloat32, Shape{2, 1}));
  });
  check_refused(convolution(), [](Graph& g, OwnNode& own) {
    own.node.inputs[1] = add(g, "w", DType::kFloat32);
    g.add_input(own.node.inputs[1]);
  });
  check_refused(convolution(), [](Graph& g, OwnNode&) { g.value(g.outputs()[0]).type.dtype = DType::kFloat64; });
  check_refused(convolution(), [](Graph&, OwnNode& own) { own.node.op = "ConvTransposeLast"; });  // makes one channel
  check_refused(half_product(), [](Graph& g, OwnNode& own) {
    own.node.inputs[1] = g.add_constant("wide", HostTensor::allocate(DType::kFloat32, Shape{2, 2}));
  });
  check_refused(half_product(), [](Graph& g, OwnNode&) { g.value(0).type.dtype = DType::kFloat64; });
}

}  // namespace
