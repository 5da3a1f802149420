#include "runtime/hot_shapes.h"

#include <algorithm>

#include "base/hash.h"

namespace asc {
namespace {

bool is_same(const Plan& plan, const HotShape& hot, const std::vector<TensorView>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (hot.shapes[i] != inputs[i].shape) return false;
    const size_t bytes = plan.host_inputs[i] ? hot.values[i].bytes() : 0;
    if (bytes && std::memcmp(hot.values[i].data(), inputs[i].data, bytes) != 0) return false;
  }
  return true;
}

// In place: where shapes grow, every run is a new one.
void set(HotShape& hot, const Plan& plan, const std::vector<TensorView>& inputs) {
  hot.shapes.resize(inputs.size());
  hot.values.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    hot.shapes[i] = inputs[i].shape;
    if (!plan.host_inputs[i]) continue;
    HostTensor value = HostTensor::allocate(inputs[i].dtype, inputs[i].shape);
    if (value.bytes()) std::memcpy(value.mutable_data(), inputs[i].data, value.bytes());
    hot.values[i] = std::move(value);
  }
}

}  // namespace

void HotShapes::note(const Plan& plan, const std::vector<TensorView>& inputs) {
  words_.clear();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorView& in = inputs[i];
    words_.push_back(static_cast<uint64_t>(in.shape.rank()));
    for (int64_t d : in.shape) words_.push_back(static_cast<uint64_t>(d));
    if (!plan.host_inputs[i]) continue;
    const size_t bytes = static_cast<size_t>(in.shape.num_elements()) * size_of(in.dtype);
    if (bytes > kMaxValueBytes) return;
    words_.push_back(hash_bytes(in.data, bytes));
  }
  const uint64_t hash = hash_words(words_.data(), words_.size());
  auto at = entries_.begin();
  while (at != entries_.end() && !(at->hash == hash && is_same(plan, at->hot, inputs))) ++at;
  if (at == entries_.end()) {
    Entry entry;
    if (entries_.size() == kMaxCount) {
      entry = std::move(entries_.back());
      entries_.pop_back();
    }
    entry.hash = hash;
    set(entry.hot, plan, inputs);
    entries_.push_back(std::move(entry));
    at = entries_.end() - 1;
  }
  std::rotate(entries_.begin(), at, at + 1);
}

std::vector<HotShape> HotShapes::list() const {
  std::vector<HotShape> hot;
  for (const Entry& e : entries_) hot.push_back(e.hot);
  return hot;
}

}  // namespace asc
