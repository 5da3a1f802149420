// Least-recently-used cache from a key of 64-bit words to a value, bounded in bytes. The hash finds candidates, the
// full key decides. Not thread-safe: guarded by its owner's lock. Removing any entry at any time changes no result:
// values are shared pointers, so whoever uses one keeps it.
#pragma once

#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/array_view.h"
#include "base/hash.h"

namespace asc {

// A key under construction; reused between look-ups so that building one allocates nothing once warm.
class Key {
 public:
  void clear() { words_.clear(); }
  void add(uint64_t word) { words_.push_back(word); }
  void add_bytes(const void* data, size_t bytes) {
    add(bytes);
    const size_t at = words_.size(), count = (bytes + 7) / 8;
    words_.resize(at + count, 0);
    if (bytes) std::memcpy(words_.data() + at, data, bytes);
  }
  ArrayView<const uint64_t> words() const { return {words_.data(), words_.size()}; }
  uint64_t hash() const { return hash_words(words_.data(), words_.size()); }

 private:
  std::vector<uint64_t> words_;
};

struct CacheCounters {
  uint64_t hits = 0, misses = 0, evictions = 0;
  size_t entries = 0, bytes = 0;
};

template <typename T>
class KeyedCache {
 public:
  explicit KeyedCache(size_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // Null on a miss. A hit becomes the most recent entry.
  std::shared_ptr<T> find(const Key& key) {
    auto [it, end] = index_.equal_range(key.hash());
    for (; it != end; ++it) {
      Entry& e = *it->second;
      if (!is_equal(e.key, key.words())) continue;
      ++counters_.hits;
      if (it->second != order_.begin()) order_.splice(order_.begin(), order_, it->second);
      return e.value;
    }
    ++counters_.misses;
    return nullptr;
  }

  // The key must be absent. An entry larger than the limit is not kept.
  void insert(const Key& key, std::shared_ptr<T> value, size_t value_bytes) {
    const size_t bytes = value_bytes + key.words().size() * 8 + sizeof(Entry) + 64;  // 64: list and index nodes
    if (bytes > limit_bytes_) return;
    shrink(limit_bytes_ - bytes);
    const ArrayView<const uint64_t> words = key.words();
    order_.push_front({key.hash(), bytes, {words.begin(), words.end()}, std::move(value)});
    index_.emplace(order_.front().hash, order_.begin());
    counters_.bytes += bytes;
    ++counters_.entries;
  }

  void resize(size_t limit_bytes) {
    limit_bytes_ = limit_bytes;
    shrink(limit_bytes);
  }
  void clear() { shrink(0); }
  // Drops the n-th most recent entry, if there is one (tests: dropping anything at any time changes no result).
  void drop(size_t n) {
    if (n >= order_.size()) return;
    auto it = order_.begin();
    std::advance(it, n);
    erase(it);
  }

  const CacheCounters& counters() const { return counters_; }
  size_t limit_bytes() const { return limit_bytes_; }

 private:
  struct Entry {
    uint64_t hash;
    size_t bytes;
    std::vector<uint64_t> key;
    std::shared_ptr<T> value;
  };
  using Order = std::list<Entry>;

  static bool is_equal(const std::vector<uint64_t>& a, ArrayView<const uint64_t> b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * 8) == 0;
  }
  void shrink(size_t to_bytes) {
    while (!order_.empty() && counters_.bytes > to_bytes) {
      erase(std::prev(order_.end()));
      ++counters_.evictions;
    }
  }
  void erase(typename Order::iterator entry) {
    auto [it, end] = index_.equal_range(entry->hash);
    for (; it != end; ++it)
      if (it->second == entry) {
        index_.erase(it);
        break;
      }
    counters_.bytes -= entry->bytes;
    --counters_.entries;
    order_.erase(entry);
  }

  size_t limit_bytes_;
  Order order_;  // most recent first
  std::unordered_multimap<uint64_t, typename Order::iterator> index_;
  CacheCounters counters_;
};

}  // namespace asc
