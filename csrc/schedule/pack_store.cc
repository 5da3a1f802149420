#include "schedule/pack_store.h"

#include <cstring>

namespace asc {
namespace {

std::shared_ptr<const Buffer> pack(const Tiling& tiling, const std::vector<const void*>& inputs) {
  auto packed = std::make_shared<const Buffer>(tiling.packed_bytes);
#ifndef NDEBUG
  std::memset(packed->data(), 0, packed->bytes());  // gaps between its parts, for the comparison below
#endif
  tiling.pack(tiling, inputs.data(), packed->data());
  return packed;
}

// What a layout forgets to name gives wrong numbers, and only where one constant is packed in two ways. Builds with
// checks pack again instead of trusting it.
void check_shared(const Buffer& shared, const Tiling& tiling, const std::vector<const void*>& inputs,
                  const PlanNode& node) {
#ifndef NDEBUG
  if (std::memcmp(shared.data(), pack(tiling, inputs)->data(), shared.bytes()) != 0)
    throw PlanError("[pack] " + node.node.op + " '" + node.node.name + "': '" + tiling.implementation +
                    "' packs its constants otherwise than another tiling of the same packed_layout; that layout must "
                    "name all that the packing depends on");
#else
  (void)shared, (void)tiling, (void)inputs, (void)node;
#endif
}

}  // namespace

std::shared_ptr<const Buffer> PackStore::get(const Tiling& tiling, const PlanNode& node, const Plan& plan) {
  if (tiling.packed_bytes == 0) return nullptr;
  std::vector<uint64_t> key{reinterpret_cast<uintptr_t>(tiling.pack), tiling.packed_layout, tiling.packed_bytes};
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
      if (std::shared_ptr<const Buffer> alive = it->second.packed.lock()) {
        check_shared(*alive, tiling, inputs, node);
        return alive;
      }
    ++it;
  }
  const std::shared_ptr<const Buffer> packed = pack(tiling, inputs);
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
