// Cache from a key of 64-bit words to a value, bounded in bytes. The hash finds candidates, the full key decides.
// Eviction is S3-FIFO (Yang et al., SOSP'23), chosen by measurement: docs/decisions/0009. A new entry waits in a small
// queue; only what is asked for again moves to the main one, and a key that was dropped too early is remembered by its
// hash for a while and goes there at once. A hit moves nothing: it counts. Where forecasts are at hand, what they name
// stays before the rest: docs/decisions/0036.
//
// Not thread-safe: guarded by its owner's lock. Removing any entry at any time changes no result: values are shared
// pointers, so whoever uses one keeps it.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <list>
#include <memory>
#include <unordered_set>
#include <vector>

#include "base/array_view.h"
#include "base/hash.h"
#include "schedule/retention.h"

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
  // Entries that stayed, and new ones that were not kept, because of what was foreseen.
  uint64_t spared = 0, refused = 0;
};

template <typename T>
class KeyedCache {
 public:
  // What happens to an entry that leaves: `is_evicted` where there was no room for it, else it was dropped on request.
  using Removed = void (*)(void* context, const T& value, size_t bytes, bool is_evicted);

  explicit KeyedCache(size_t limit_bytes, Removed removed = nullptr, void* context = nullptr)
      : limit_bytes_(limit_bytes), index_(kMinSlots), removed_(removed), context_(context) {}
  KeyedCache(const KeyedCache&) = delete;
  KeyedCache& operator=(const KeyedCache&) = delete;

  // Null on a miss.
  std::shared_ptr<T> find(const Key& key) {
    const uint64_t hash = key.hash();
    for (size_t at = hash & mask(); index_[at].entry != nullptr; at = (at + 1) & mask()) {
      if (index_[at].hash != hash || !is_equal(index_[at].entry->key, key.words())) continue;
      Entry& e = *index_[at].entry;
      e.uses += e.uses < kMaxUses;
      ++counters_.hits;
      return e.value;
    }
    ++counters_.misses;
    return nullptr;
  }

  // The key must be absent. An entry larger than the limit is not kept, nor one that all others are due before.
  // Returns its bytes, 0 when it was not kept. `tag`: what forecasts call it; 0: nothing.
  size_t insert(const Key& key, std::shared_ptr<T> value, size_t value_bytes, uint64_t tag = 0) {
    const size_t bytes = value_bytes + key.words().size() * 8 + kOverheadBytes;
    if (bytes > limit_bytes_) return 0;
    if (outlook_ && counters_.bytes + bytes > limit_bytes_ && !make_room(limit_bytes_ - bytes, tag)) return 0;
    shrink(limit_bytes_ - bytes);
    if ((counters_.entries + 1) * 2 > index_.size()) rehash(index_.size() * 2);
    const ArrayView<const uint64_t> words = key.words();
    const uint64_t hash = key.hash();
    const bool is_main = ghosts_.erase(hash) != 0;
    Queue& queue = is_main ? main_ : small_;
    queue.push_front({hash, bytes, {words.begin(), words.end()}, std::move(value), tag, 0, is_main});
    queue.front().self = queue.begin();
    if (!is_main) small_bytes_ += bytes;
    counters_.bytes += bytes;
    ++counters_.entries;
    place(&queue.front());
    return bytes;
  }

  // Forecasts, for as long as the cache is used; null: none.
  void set_outlook(Outlook* outlook) { outlook_ = outlook; }
  // Whether an entry with this tag, as large as they are on average, would be kept.
  bool would_keep(uint64_t tag) {
    if (!outlook_ || !counters_.entries) return true;
    if (counters_.bytes + counters_.bytes / counters_.entries <= limit_bytes_) return true;
    const DueTimes due(outlook_->coming());
    if (due.is_empty() || counters_.entries > kMostForeseen) return true;
    Outlook::Decision decision = decide(due, tag);
    if (decision.made.choice != Retention::Choice::kIncoming) return true;
    refuse(std::move(decision));
    return false;
  }

  void resize(size_t limit_bytes) {
    limit_bytes_ = limit_bytes;
    shrink(limit_bytes);
  }
  void clear() { shrink(0); }
  // Drops the n-th entry, if there is one (tests: dropping anything at any time changes no result).
  void drop(size_t n) {
    if (n < counters_.entries) erase(nth(n), false);
  }

  const CacheCounters& counters() const { return counters_; }
  size_t limit_bytes() const { return limit_bytes_; }

 private:
  struct Entry;
  using Queue = std::list<Entry>;  // newest first
  struct Entry {
    uint64_t hash;
    size_t bytes;
    std::vector<uint64_t> key;
    std::shared_ptr<T> value;
    uint64_t tag;
    uint8_t uses;  // since it entered its queue, up to kMaxUses
    bool is_main;
    typename Queue::iterator self{};
  };
  struct IndexSlot {
    uint64_t hash = 0;
    Entry* entry = nullptr;
  };

  static constexpr uint8_t kMaxUses = 3;
  static constexpr size_t kMinSlots = 16;
  static constexpr size_t kMostForeseen = 256;                   // entries that are looked at for what is foreseen
  static constexpr size_t kOverheadBytes = sizeof(Entry) + 112;  // list node, two index slots, a ghost

  static bool is_equal(const std::vector<uint64_t>& a, ArrayView<const uint64_t> b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * 8) == 0);
  }

  // --- queues --------------------------------------------------------------------------------------------------
  void shrink(size_t to_bytes) {
    while (counters_.bytes > to_bytes) evict();
  }
  // Makes room for one that is due sometime, or says that it is not kept.
  bool make_room(size_t to_bytes, uint64_t tag) {
    const DueTimes due(outlook_->coming());
    while (!due.is_empty() && counters_.bytes > to_bytes && counters_.entries <= kMostForeseen) {
      Outlook::Decision decision = decide(due, tag);
      const Retention made = decision.made;
      if (made.choice == Retention::Choice::kUnforeseen) {
        evict_unforeseen(due);
        continue;
      }
      if (made.choice == Retention::Choice::kIncoming) {
        refuse(std::move(decision));
        return false;
      }
      outlook_->note_decision(std::move(decision));
      erase(nth(made.entry), true);
    }
    return true;
  }
  void refuse(Outlook::Decision decision) {
    ++counters_.refused;
    outlook_->note_decision(std::move(decision));
  }
  Outlook::Decision decide(const DueTimes& due, uint64_t tag) const {
    Outlook::Decision decision;
    for (const Queue* queue : {&small_, &main_})
      for (const Entry& e : *queue) decision.due.push_back(due.of(e.tag));
    decision.incoming = due.of(tag);
    decision.made = choose_victim({decision.due.data(), decision.due.size()}, decision.incoming);
    return decision;
  }
  Entry& nth(size_t n) {
    Queue& queue = n < small_.size() ? small_ : main_;
    return *std::next(queue.begin(), static_cast<ptrdiff_t>(&queue == &main_ ? n - small_.size() : n));
  }
  // The small queue holds a third: with less, shapes that come in bursts are dropped before they come back.
  bool is_turn_of_small() const { return main_.empty() || (!small_.empty() && small_bytes_ * 3 >= limit_bytes_); }
  // A step towards one entry less.
  void evict() { is_turn_of_small() ? evict_small(small_.back()) : evict_main(main_.back()); }
  // The same among those that are not foreseen, of which there is one.
  void evict_unforeseen(const DueTimes& due) {
    const bool is_small_first = is_turn_of_small();
    for (Queue* queue : {is_small_first ? &small_ : &main_, is_small_first ? &main_ : &small_})
      for (auto e = queue->rbegin(); e != queue->rend(); ++e) {
        if (due.of(e->tag) != kNotForeseen) {
          counters_.spared += !e->uses;
          continue;
        }
        e->is_main ? evict_main(*e) : evict_small(*e);
        return;
      }
  }
  void evict_small(Entry& e) {
    if (e.uses) {
      small_bytes_ -= e.bytes;
      e.uses = 0;
      e.is_main = true;
      main_.splice(main_.begin(), small_, e.self);
      return;
    }
    remember(e.hash);
    erase(e, true);
  }
  void evict_main(Entry& e) {
    if (e.uses) {
      --e.uses;
      main_.splice(main_.begin(), main_, e.self);
      return;
    }
    erase(e, true);
  }
  void remember(uint64_t hash) {
    if (ghosts_.insert(hash).second) ghost_order_.push_back(hash);
    while (ghost_order_.size() > counters_.entries) {
      ghosts_.erase(ghost_order_.front());
      ghost_order_.pop_front();
    }
  }
  void erase(Entry& e, bool is_evicted) {
    unplace(&e);
    counters_.evictions += is_evicted;
    if (removed_) removed_(context_, *e.value, e.bytes, is_evicted);
    if (outlook_ && e.tag) outlook_->note_gone(e.tag);
    counters_.bytes -= e.bytes;
    --counters_.entries;
    if (!e.is_main) small_bytes_ -= e.bytes;
    (e.is_main ? main_ : small_).erase(e.self);
  }

  // --- index: open addressing, at most half full ----------------------------------------------------------------
  size_t mask() const { return index_.size() - 1; }
  void place(Entry* e) {
    size_t at = e->hash & mask();
    while (index_[at].entry) at = (at + 1) & mask();
    index_[at] = {e->hash, e};
  }
  void unplace(const Entry* e) {
    size_t hole = e->hash & mask();
    while (index_[hole].entry != e) hole = (hole + 1) & mask();
    // Whatever follows without a gap and may live in the hole moves there, so that no search stops early.
    for (size_t at = (hole + 1) & mask(); index_[at].entry; at = (at + 1) & mask()) {
      const size_t home = index_[at].hash & mask();
      if (((at - home) & mask()) < ((at - hole) & mask())) continue;
      index_[hole] = index_[at];
      hole = at;
    }
    index_[hole] = {};
  }
  void rehash(size_t slots) {
    index_.assign(slots, {});
    for (Queue* queue : {&small_, &main_})
      for (Entry& e : *queue) place(&e);
  }

  size_t limit_bytes_;
  Queue small_, main_;
  size_t small_bytes_ = 0;
  std::vector<IndexSlot> index_;  // a power of two
  std::unordered_set<uint64_t> ghosts_;
  std::deque<uint64_t> ghost_order_;
  CacheCounters counters_;
  Outlook* outlook_ = nullptr;
  const Removed removed_;
  void* const context_;
};

}  // namespace asc
