// A node under test, for the tests of the operators' rules.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "ops/op.h"

namespace asc::test {

using Ints = std::vector<int64_t>;

inline const Op& op(const std::string& name) {
  const Op* found = OpRegistry::instance().find(name);
  REQUIRE_MESSAGE(found != nullptr, name);
  return *found;
}

// One node under test: `Case("Add").input({2, 3}).input({3}).shape()`.
class Case {
 public:
  explicit Case(const std::string& name, int outputs = 1) {
    node_.op = name;
    node_.name = "n1";
    node_.outputs.assign(outputs, 0);
  }
  Case& set(const std::string& name, Attribute::Data data) {
    node_.attributes.set(name, std::move(data));
    return *this;
  }
  Case& input(const Shape& s, DType t = DType::kFloat32) {
    types_.push_back(t);
    shapes_.push_back(s);
    hosts_.emplace_back();
    return *this;
  }
  Case& host(const HostTensor& value) {
    input(value.shape, value.dtype);
    hosts_.back() = value;
    return *this;
  }
  Case& ints(const Ints& values) {
    return host(HostTensor::from(DType::kInt64, Shape{static_cast<int64_t>(values.size())}, values));
  }
  Case& absent() { return input(Shape(), DType::kUndefined); }

  std::vector<Shape> shapes() const {
    std::vector<const Shape*> shapes;
    std::vector<const HostTensor*> hosts;
    for (size_t i = 0; i < types_.size(); ++i) {
      shapes.push_back(types_[i] == DType::kUndefined ? nullptr : &shapes_[i]);
      hosts.push_back(hosts_[i].buffer ? &hosts_[i] : nullptr);
    }
    std::vector<Shape> outputs(node_.outputs.size());
    InferContext ctx(node_, types_.data(), shapes.data(), hosts.data(), static_cast<int>(types_.size()), outputs.data(),
                     static_cast<int>(outputs.size()));
    op(node_.op).infer_shape(ctx);
    CHECK((ctx.host_reads() & ~op(node_.op).host_inputs) == 0);
    return outputs;
  }
  std::string shape(int output = 0) const { return shapes()[output].text(); }
  DType type(int output = 0) const { return op(node_.op).infer_dtype(node_, types_, output); }

 private:
  Node node_;
  std::vector<DType> types_;
  std::vector<Shape> shapes_;
  std::vector<HostTensor> hosts_;
};

inline HostTensor scalar(int64_t value) { return HostTensor::from(DType::kInt64, Shape(), Ints{value}); }

}  // namespace asc::test
