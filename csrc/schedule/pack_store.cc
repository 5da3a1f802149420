#include "schedule/pack_store.h"

namespace asc {

std::shared_ptr<const Buffer> PackStore::get(const Tiling& tiling, const PlanNode& node, const Plan& plan) {
  if (tiling.packed_bytes == 0) return nullptr;
  std::vector<uint64_t> key{tiling.packed_layout, tiling.packed_bytes};
  std::vector<const void*> inputs;
  for (ValueId v : node.node.inputs) {
    const HostTensor* c = v == kNoValue ? nullptr : plan.values[v].constant.get();
    inputs.push_back(c ? c->data() : nullptr);
    key.push_back(reinterpret_cast<uintptr_t>(inputs.back()));
  }
  const uint64_t hash = hash_words(key.data(), key.size());
  auto [it, end] = entries_.equal_range(hash);
  while (it != end) {
    if (it->second.packed.expired()) {
      it = entries_.erase(it);
      continue;
    }
    if (it->second.key == key)
      if (std::shared_ptr<const Buffer> alive = it->second.packed.lock()) return alive;
    ++it;
  }
  auto packed = std::make_shared<const Buffer>(tiling.packed_bytes);
  tiling.pack(tiling, inputs.data(), const_cast<Buffer&>(*packed).data());
  entries_.emplace(hash, Entry{std::move(key), packed});
  return packed;
}

size_t PackStore::bytes() const {
  size_t total = 0;
  for (const auto& entry : entries_)
    if (std::shared_ptr<const Buffer> alive = entry.second.packed.lock()) total += alive->bytes();
  return total;
}

}  // namespace asc
