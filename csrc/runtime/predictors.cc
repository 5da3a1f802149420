#include "runtime/predictors.h"

#include <algorithm>

#include "base/hash.h"

namespace asc {
namespace {

// Of a rolling hash, an odd number, and its power for the oldest of eight symbols.
constexpr uint64_t kFactor = 0x9E3779B97F4A7C15ull;
constexpr uint64_t kSquare = kFactor * kFactor;
constexpr uint64_t kFirstFactor = kSquare * kSquare * kSquare * kFactor;

}  // namespace

void PeriodicPredictor::observe(uint64_t symbol) {
  note_phrase(symbol);
  uint64_t& where = where_.use(symbol);
  uint64_t& where_phrase = where_phrase_.use(phrase_);
  if (period_ && seen(period_) == symbol) {
    ++kept_;
  } else {
    period_ = distance_to(where_phrase);
    if (!period_) period_ = distance_to(where);
    kept_ = 1;
  }
  where = where_phrase = count_ + 1;
  seen_[count_++ % kWindow] = symbol;
}

// The oldest symbol leaves the hash, the new one enters; of fewer symbols it is a hash of those.
void PeriodicPredictor::note_phrase(uint64_t symbol) {
  const uint64_t leaving = count_ < kPhrase ? 0 : seen(kPhrase);
  phrase_ = (phrase_ - leaving * kFirstFactor) * kFactor + symbol;
}

uint64_t PeriodicPredictor::distance_to(uint64_t where) const {
  const uint64_t distance = where ? count_ + 1 - where : 0;
  return distance <= std::min(count_, kWindow) ? distance : 0;
}

std::vector<uint64_t> PeriodicPredictor::coming() const {
  std::vector<uint64_t> symbols;
  if (kept_ < 2 * period_) return symbols;
  for (uint64_t ago = period_; ago > 0; --ago) symbols.push_back(seen(ago));
  return symbols;
}

void FrequentPredictor::observe(uint64_t symbol) {
  uint64_t& slot = seen_[count_++ % kWindow];
  if (slot != symbol) {
    uint32_t* const old = slot ? counts_.find(slot) : nullptr;
    if (old && *old) --*old;
    ++counts_.use(symbol);
    slot = symbol;
  }
  // One that has become the most frequent because another left shows when it comes next.
  const uint32_t* const best = counts_.find(best_);
  if (!best || counts_.use(symbol) > *best) best_ = symbol;
}

void MarkovPredictor::observe(uint64_t symbol) {
  if (context_) {
    Followers& followers = table_.use(context_);
    size_t at = 0;
    for (size_t i = 0; i < followers.symbols.size(); ++i) {
      if (followers.symbols[i] == symbol) {
        at = i;
        break;
      }
      if (followers.counts[i] < followers.counts[at]) at = i;
    }
    if (followers.symbols[at] != symbol) followers.counts[at] = 0;
    followers.symbols[at] = symbol;
    ++followers.counts[at];
  }
  recent_.push_back(symbol);
  if (recent_.size() > order_) recent_.pop_front();
  if (recent_.size() < order_) return;
  context_ = order_;
  for (uint64_t s : recent_) context_ = mix64(context_, s);
  context_ |= 1;
}

uint64_t MarkovPredictor::next() {
  const Followers* const followers = context_ ? table_.find(context_) : nullptr;
  if (!followers) return 0;
  const auto& counts = followers->counts;
  const auto most = std::max_element(counts.begin(), counts.end());
  uint32_t all = 0;
  for (uint32_t count : counts) all += count;
  if (*most < 2 || 2 * *most <= all) return 0;
  return followers->symbols[static_cast<size_t>(most - counts.begin())];
}

}  // namespace asc
