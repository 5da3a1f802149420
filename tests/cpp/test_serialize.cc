// Graphs as bytes and back, and bytes that are no graph.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/bulk_hash.h"
#include "base/error.h"
#include "graph/serialize.h"

namespace {

using asc::ArrayView;
using asc::Attributes;
using asc::Buffer;
using asc::DType;
using asc::Graph;
using asc::GraphBytes;
using asc::HostTensor;
using asc::kNoValue;
using asc::Node;
using asc::Shape;
using asc::ValueId;

HostTensor floats(const std::vector<float>& values) {
  return HostTensor::from(DType::kFloat32, Shape{static_cast<int64_t>(values.size())}, values);
}

Graph body() {
  Graph g;
  g.name = "body";
  asc::Value v;
  v.name = "inner";
  g.add_input(g.add_value(v));
  g.add_output(0);
  g.add_constant("again", floats({1, 2, 3}));
  return g;
}

// Every kind of attribute, an absent input, a symbol, an unknown dimension and two equal constants.
Graph sample() {
  Graph g;
  g.name = "sample";
  g.is_rewritten = g.is_channels_last = true;
  asc::Value x;
  x.name = "x";
  x.type = {DType::kFloat32, true, {{3, ""}, {-1, "n"}, {-1, ""}}};
  g.add_input(g.add_value(x));
  const ValueId w = g.add_constant("w", floats({1, 2, 3}));
  g.add_constant("flags", HostTensor::from<uint8_t>(DType::kBool, Shape{2}, {1, 0}));
  const ValueId y = g.add_value({"y", {}, nullptr});
  Node n;
  n.name = "node";
  n.op = "Op";
  n.inputs = {0, kNoValue, w};
  n.outputs = {y};
  n.attributes.set("i", int64_t{-5});
  n.attributes.set("f", 0.1);
  n.attributes.set("s", std::string("text\0zero", 9));
  n.attributes.set("is", std::vector<int64_t>{1, -2});
  n.attributes.set("fs", std::vector<double>{});
  n.attributes.set("ss", std::vector<std::string>{"a", ""});
  n.attributes.set("t", floats({4}));
  n.attributes.set("g", std::make_shared<Graph>(body()));
  g.add_node(n);
  g.own_nodes.push_back({0, 1, n});
  g.own_nodes[0].node.name = "own";
  g.add_output(y);
  return g;
}

struct Stored {
  std::string structure;
  std::shared_ptr<Buffer> data;

  explicit Stored(const GraphBytes& bytes)
      : structure(bytes.structure), data(std::make_shared<Buffer>(static_cast<size_t>(bytes.data_bytes))) {
    for (size_t i = 0; i < bytes.constants.size(); ++i)
      std::memcpy(static_cast<char*>(data->data()) + bytes.offsets[i], bytes.constants[i].data(),
                  bytes.constants[i].bytes());
  }
  Graph read(const std::string& from) const { return read(from, data->bytes()); }
  Graph read(const std::string& from, size_t data_bytes) const {
    return asc::deserialize({from.data(), from.size()}, {static_cast<const char*>(data->data()), data_bytes}, data);
  }
};

TEST_CASE("a graph survives being bytes") {
  const Graph g = sample();
  const Stored stored(asc::serialize(g));
  const Graph r = stored.read(stored.structure);
  CHECK(r.name == "sample");
  CHECK(r.is_rewritten);
  CHECK(r.is_channels_last);
  REQUIRE(r.value_count() == g.value_count());
  CHECK(r.value(0).type.text() == "float32[3, n, ?]");
  CHECK(r.value(1).constant->same_value(*g.value(1).constant));
  CHECK(r.value(2).constant->same_value(*g.value(2).constant));
  CHECK(r.value(3).constant.get() == nullptr);
  CHECK(r.inputs() == g.inputs());
  CHECK(r.outputs() == g.outputs());
  REQUIRE(r.nodes().size() == 1);
  const Node& n = r.nodes()[0];
  CHECK(n.inputs == std::vector<ValueId>{0, kNoValue, 1});
  CHECK(n.attributes.text() == g.nodes()[0].attributes.text());
  CHECK(n.attributes.get_string("s", "").size() == 9);
  REQUIRE(r.own_nodes.size() == 1);
  CHECK((r.own_nodes[0].first == 0 && r.own_nodes[0].count == 1));
  CHECK(r.own_nodes[0].node.name == "own");
  CHECK(r.own_nodes[0].node.attributes.text() == n.attributes.text());
  const Graph& inner = *n.attributes.get_graph("g");
  CHECK(!inner.is_rewritten);
  CHECK(inner.value(1).constant.get() == r.value(1).constant.get());  // equal contents are stored once
  CHECK(asc::serialize(r).structure == stored.structure);
}

TEST_CASE("constants stay in the bytes and keep their owner") {
  const GraphBytes bytes = asc::serialize(sample());
  for (uint64_t offset : bytes.offsets) CHECK(offset % asc::kAlignment == 0);
  Stored stored(bytes);
  const Graph r = stored.read(stored.structure);
  const char* begin = static_cast<const char*>(stored.data->data());
  stored.data.reset();
  CHECK(static_cast<const char*>(r.value(1).constant->data()) - begin == 0);
  CHECK(r.value(1).constant->as<float>()[2] == 3);
}

TEST_CASE("every truncation of a structure is refused") {
  const Stored stored(asc::serialize(sample()));
  for (size_t size = 0; size < stored.structure.size(); ++size)
    CHECK_THROWS_AS(stored.read(stored.structure.substr(0, size)), asc::GraphError);
  CHECK_THROWS_AS(stored.read(stored.structure + "x"), asc::GraphError);
}

TEST_CASE("constants that reach beyond the data are refused") {
  const Stored stored(asc::serialize(sample()));
  CHECK_THROWS_AS(stored.read(stored.structure, 0), asc::GraphError);
  CHECK_THROWS_AS(stored.read(stored.structure, asc::kAlignment), asc::GraphError);
}

TEST_CASE("every changed byte of a structure gives a graph or an error") {
  const Stored stored(asc::serialize(sample()));
  for (size_t i = 0; i < stored.structure.size(); ++i) {
    for (const int value : {0, 1, 7, 127, 128, 255}) {
      std::string changed = stored.structure;
      changed[i] = static_cast<char>(value);
      try {
        stored.read(changed).validate_and_sort();
      } catch (const asc::GraphError&) {
      }
    }
  }
}

TEST_CASE("a bool that is neither true nor false is refused") {
  const GraphBytes bytes = asc::serialize(sample());
  const Stored stored(bytes);
  for (size_t i = 0; i < bytes.constants.size(); ++i)
    if (bytes.constants[i].dtype == DType::kBool) static_cast<char*>(stored.data->data())[bytes.offsets[i]] = 2;
  CHECK_THROWS_WITH_AS(stored.read(stored.structure), doctest::Contains("bool"), asc::GraphError);
}

TEST_CASE("the hash of much data changes with every byte and with the length") {
  std::vector<unsigned char> data(1100, 0);  // several blocks and a rest
  const uint64_t plain = asc::hash_bulk(data.data(), data.size());
  for (unsigned char& byte : data) {
    byte ^= 1;
    CHECK(asc::hash_bulk(data.data(), data.size()) != plain);
    byte ^= 1;
  }
  for (size_t size = 0; size < data.size(); ++size) CHECK(asc::hash_bulk(data.data(), size) != plain);
}

TEST_CASE("a hash does not depend on where the data lie") {
  std::vector<unsigned char> data(2000), moved(2064);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(i * 7 + i / 256);
  const uint64_t plain = asc::hash_bulk(data.data(), data.size());
  for (size_t shift = 0; shift < 64; ++shift) {
    std::copy(data.begin(), data.end(), moved.begin() + static_cast<std::ptrdiff_t>(shift));
    CHECK(asc::hash_bulk(moved.data() + shift, data.size()) == plain);
  }
}

TEST_CASE("text that is no UTF-8 is refused") {
  const Stored stored(asc::serialize(sample()));
  std::string changed = stored.structure;
  changed[changed.find("node")] = '\xff';
  CHECK_THROWS_WITH_AS(stored.read(changed), doctest::Contains("UTF-8"), asc::GraphError);
}

}  // namespace
