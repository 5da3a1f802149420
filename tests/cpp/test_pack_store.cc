// Which tilings share a packed constant.
#include <doctest/doctest.h>

#include <cstring>

#include "schedule/pack_store.h"

namespace asc {
namespace {

struct Scaled : Tiling {
  float by = 1;
};

void pack_scaled(const Tiling& tiling, const void* const* inputs, void* packed) {
  const float by = static_cast<const Scaled&>(tiling).by;
  for (int i = 0; i < 4; ++i) static_cast<float*>(packed)[i] = static_cast<const float*>(inputs[1])[i] * by;
}

void pack_copied(const Tiling&, const void* const* inputs, void* packed) { std::memcpy(packed, inputs[1], 16); }

Scaled scaled(float by, uint64_t layout) {
  Scaled t;
  t.by = by;
  t.packed_bytes = 16;
  t.packed_layout = layout;
  t.pack = pack_scaled;
  return t;
}

// y = x · w, with w constant.
struct Product {
  Product() {
    plan.values.resize(3);
    plan.values[1].constant =
        std::make_shared<const HostTensor>(HostTensor::from(DType::kFloat32, Shape{4}, std::vector<float>{1, 2, 3, 4}));
    node.node.op = "MatMul";
    node.node.inputs = {0, 1};
    node.node.outputs = {2};
  }
  Plan plan;
  PlanNode node;
};

float first(const std::shared_ptr<const Buffer>& packed) { return *static_cast<const float*>(packed->data()); }

TEST_CASE("equal layouts of one function share a copy while somebody holds it") {
  const Product p;
  PackStore store;
  auto packed = store.get(scaled(2, 7), p.node, p.plan);
  CHECK(first(packed) == 2);
  CHECK((store.get(scaled(2, 7), p.node, p.plan) == packed));
  CHECK(store.bytes() == 16);
  packed.reset();
  CHECK(store.bytes() == 0);
}

TEST_CASE("another layout, another function or another constant is packed for itself") {
  const Product p;
  PackStore store;
  const auto packed = store.get(scaled(2, 7), p.node, p.plan);
  CHECK(first(store.get(scaled(3, 8), p.node, p.plan)) == 3);
  Scaled copied = scaled(2, 7);
  copied.pack = pack_copied;
  CHECK(first(store.get(copied, p.node, p.plan)) == 1);
  const Product other;
  CHECK((store.get(scaled(2, 7), other.node, other.plan) != packed));
}

#ifndef NDEBUG
TEST_CASE("a layout that does not name what its packing depends on is found out") {
  const Product p;
  PackStore store;
  const auto packed = store.get(scaled(2, 7), p.node, p.plan);
  CHECK_THROWS_AS(store.get(scaled(3, 7), p.node, p.plan), PlanError);
}
#endif

}  // namespace
}  // namespace asc
