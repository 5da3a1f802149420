#include "schedule/memory_search.h"

#include <algorithm>
#include <numeric>

#include "base/hash.h"

namespace asc {
namespace {

constexpr int64_t kNever = INT64_MAX;
constexpr uint32_t kMaxDepth = 4000;          // of nested nodes, some 0.5 KiB of stack each
constexpr uint64_t kLooksPerCheck = 1 << 18;  // at blocks and sections, between two questions whether to stop
constexpr int kMaxLifts = 4;

}  // namespace

BlockSearch::BlockSearch(std::vector<SearchedBlock> blocks, int32_t sections)
    : blocks_(std::move(blocks)),
      block_keys_(blocks_.size()),
      loads_(static_cast<size_t>(sections), 0),
      sections_(sections),
      skyline_(loads_),
      level_(loads_),
      base_(loads_),
      first_end_(loads_),
      second_end_(loads_),
      packed_end_(loads_),
      first_block_(loads_.size(), 0),
      answers_(loads_.size(), 0),
      offsets_(blocks_.size(), 0),
      support_(blocks_.size(), 0),
      start_(blocks_.size(), 0) {
  for (size_t i = 0; i < blocks_.size(); ++i) {
    block_keys_[i] = {mix64(i, 1), mix64(i, 2)};
    for (int32_t s = blocks_[i].lo; s < blocks_[i].hi; ++s) loads_[s] += blocks_[i].bytes;
  }
  remaining_ = loads_;
}

SearchEnd BlockSearch::run(int64_t height, const std::vector<uint32_t>& rank, Pick pick, Limits limits) {
  rank_ = rank.data();
  pick_ = pick;
  limits_ = limits;
  last_step_ = steps_ + limits.steps;
  is_stopped_ = false;
  pool_.resize(blocks_.size());
  std::iota(pool_.begin(), pool_.end(), 0);
  const bool is_found = solve({0, pool_.size()}, height);
  undo(0);  // keeps the offsets
  candidates_.clear();
  return is_found ? SearchEnd::kFound : is_stopped_ ? SearchEnd::kStopped : SearchEnd::kImpossible;
}

// --- state -----------------------------------------------------------------------------------------------------------

void BlockSearch::save(Change::Kind kind, int32_t block, int32_t lo, int32_t hi) {
  changes_.push_back({kind, block, lo, hi, saved_.size()});
  const std::vector<int64_t>& from = kind == Change::kLevel ? level_ : skyline_;
  saved_.insert(saved_.end(), from.begin() + lo, from.begin() + hi);
}

void BlockSearch::place(int32_t block, int64_t at) {
  const SearchedBlock& b = blocks_[block];
  save(Change::kPlaced, block, b.lo, b.hi);
  offsets_[block] = at;
  for (int32_t s = b.lo; s < b.hi; ++s) {
    skyline_[s] = at + b.bytes;
    remaining_[s] -= b.bytes;
  }
}

void BlockSearch::undo(size_t mark) {
  while (changes_.size() > mark) {
    const Change c = changes_.back();
    changes_.pop_back();
    std::vector<int64_t>& to = c.kind == Change::kLevel ? level_ : skyline_;
    std::copy(saved_.begin() + static_cast<ptrdiff_t>(c.saved_from), saved_.end(), to.begin() + c.lo);
    saved_.resize(c.saved_from);
    if (c.kind != Change::kPlaced && c.kind != Change::kTopped) continue;
    for (int32_t s = blocks_[c.block].lo; s < blocks_[c.block].hi; ++s) remaining_[s] += blocks_[c.block].bytes;
  }
}

bool BlockSearch::count_step() {
  if (++steps_ >= last_step_ || depth_ >= kMaxDepth) is_stopped_ = true;
  if (looks_ >= kLooksPerCheck) {
    looks_ = 0;
    if (limits_.should_stop && (*limits_.should_stop)()) is_stopped_ = true;
  }
  return !is_stopped_;
}

StateKey BlockSearch::key_of(Part part, int32_t lo, int32_t hi, int64_t top) const {
  StateKey key;
  for (size_t i = part.begin; i < part.end; ++i) {
    key.low ^= block_keys_[pool_[i]].low;
    key.high ^= block_keys_[pool_[i]].high;
  }
  for (int32_t s = lo; s < hi; ++s) {
    // A block may rest on the skyline, not on a level that only says that nothing starts below.
    const uint64_t room = static_cast<uint64_t>(top - base_[s]) * 2 + (skyline_[s] == base_[s]);
    key.low += mix64(room, static_cast<uint64_t>(s));
    key.high += mix64(static_cast<uint64_t>(s) + 0x5851F42D4C957F2Dull, room);
  }
  return key;
}

// --- bounds ----------------------------------------------------------------------------------------------------------

int32_t BlockSearch::reach(Part part) const {
  int32_t hi = 0;
  for (size_t i = part.begin; i < part.end; ++i) hi = std::max(hi, blocks_[pool_[i]].hi);
  return hi;
}

bool BlockSearch::has_spanning(Part part, int32_t lo, int32_t hi) const {
  for (size_t i = part.begin; i < part.end && blocks_[pool_[i]].lo == lo; ++i)
    if (blocks_[pool_[i]].hi == hi) return true;
  return false;
}

// Where each block and section may start at the earliest, by skyline and level; false where a section overflows.
bool BlockSearch::find_levels(Part part, int32_t lo, int32_t hi, int64_t top) {
  std::fill(base_.begin() + lo, base_.begin() + hi, kNever);
  for (size_t i = part.begin; i < part.end; ++i) {
    const int32_t x = pool_[i];
    int64_t support = 0, start = 0;
    for (int32_t s = blocks_[x].lo; s < blocks_[x].hi; ++s) {
      support = std::max(support, skyline_[s]);
      start = std::max(start, level_[s]);
    }
    looks_ += static_cast<uint64_t>(blocks_[x].hi - blocks_[x].lo) + 1;
    support_[x] = support;
    start_[x] = std::max(support, start);
    for (int32_t s = blocks_[x].lo; s < blocks_[x].hi; ++s) base_[s] = std::min(base_[s], start_[x]);
  }
  for (int32_t s = lo; s < hi; ++s)
    if (base_[s] + remaining_[s] > top) return false;
  return true;
}

// Lifts starts until nothing changes, or often enough, and sets base_ by them; false where a section overflows.
bool BlockSearch::lift(Part part, int32_t lo, int32_t hi, int64_t top) {
  order_.assign(pool_.begin() + static_cast<ptrdiff_t>(part.begin), pool_.begin() + static_cast<ptrdiff_t>(part.end));
  bool changed = true;
  for (int i = 0; i < kMaxLifts && changed; ++i)
    if (!lift_once(lo, hi, top, changed)) return false;
  std::fill(base_.begin() + lo, base_.begin() + hi, kNever);
  for (int32_t x : order_)
    for (int32_t s = blocks_[x].lo; s < blocks_[x].hi; ++s) base_[s] = std::min(base_[s], start_[x]);
  return true;
}

bool BlockSearch::lift_once(int32_t lo, int32_t hi, int64_t top, bool& changed) {
  std::sort(order_.begin(), order_.end(),
            [this](int32_t a, int32_t b) { return start_[a] != start_[b] ? start_[a] < start_[b] : a < b; });
  for (int32_t s = lo; s < hi; ++s) {
    first_end_[s] = second_end_[s] = kNever;
    packed_end_[s] = 0;
  }
  for (int32_t x : order_) {
    const int64_t start = start_[x], end = start + blocks_[x].bytes;
    for (int32_t s = blocks_[x].lo; s < blocks_[x].hi; ++s) {
      packed_end_[s] = std::max(packed_end_[s], start) + blocks_[x].bytes;
      if (end < first_end_[s]) {
        second_end_[s] = first_end_[s];
        first_end_[s] = end;
        first_block_[s] = x;
      } else if (end < second_end_[s]) {
        second_end_[s] = end;
      }
    }
  }
  for (int32_t s = lo; s < hi; ++s)
    if (packed_end_[s] > top) return false;
  changed = false;
  for (int32_t x : order_) {
    int64_t start = start_[x];
    for (int32_t s = blocks_[x].lo; s < blocks_[x].hi; ++s) {
      if (start + remaining_[s] <= top) continue;  // it may be the first of what remains here
      const int64_t above = first_block_[s] == x ? second_end_[s] : first_end_[s];
      if (above == kNever) return false;
      start = std::max(start, above);
    }
    changed = changed || start > start_[x];
    start_[x] = start;
  }
  return true;
}

// --- search ----------------------------------------------------------------------------------------------------------

bool BlockSearch::solve(Part all, int64_t top) {
  const size_t mark = changes_.size(), first = parts_.size();
  for (size_t at = all.begin; at < all.end;) {
    size_t end = at;
    for (int32_t hi = blocks_[pool_[at]].hi; end < all.end && blocks_[pool_[end]].lo < hi; ++end)
      hi = std::max(hi, blocks_[pool_[end]].hi);
    parts_.push_back({at, end});
    at = end;
  }
  const size_t last = parts_.size();
  std::sort(parts_.begin() + static_cast<ptrdiff_t>(first), parts_.end(), [](const Part& a, const Part& b) {
    const size_t x = a.end - a.begin, y = b.end - b.begin;
    return x != y ? x < y : a.begin < b.begin;
  });
  ++depth_;
  bool is_solved = true;
  for (size_t i = first; i < last && is_solved; ++i) is_solved = solve_connected(parts_[i], top);
  --depth_;
  parts_.resize(first);
  if (!is_solved) undo(mark);
  return is_solved;
}

bool BlockSearch::solve_connected(Part part, int64_t top) {
  if (!count_step()) return false;
  const int32_t lo = blocks_[pool_[part.begin]].lo, hi = reach(part);
  if (has_spanning(part, lo, hi)) return move_spanning_to_top(part, lo, hi, top);
  if (!find_levels(part, lo, hi, top)) return false;
  const StateKey key = key_of(part, lo, hi, top);
  if (failed_.contains(key)) return false;
  const size_t mark = changes_.size();
  if (lift(part, lo, hi, top)) {
    save(Change::kLevel, -1, lo, hi);
    std::copy(base_.begin() + lo, base_.begin() + hi, level_.begin() + lo);
    if (branch(part, pick_section(part, lo, hi, top), top)) return true;
    undo(mark);
  }
  if (!is_stopped_) failed_.add(key);
  return false;
}

bool BlockSearch::move_spanning_to_top(Part part, int32_t lo, int32_t hi, int64_t top) {
  const size_t mark = changes_.size(), rest = pool_.size();
  for (int32_t s = lo; s < hi; ++s)
    if (std::max(skyline_[s], level_[s]) + remaining_[s] > top) return false;
  for (size_t i = part.begin; i < part.end; ++i) {
    const int32_t x = pool_[i];
    const SearchedBlock& b = blocks_[x];
    if (b.lo != lo || b.hi != hi) {
      pool_.push_back(x);
      continue;
    }
    top -= b.bytes;
    save(Change::kTopped, x, lo, lo);
    offsets_[x] = top;
    for (int32_t s = lo; s < hi; ++s) remaining_[s] -= b.bytes;
  }
  // What was above it moved down, perhaps onto a level: from now on blocks may rest on levels as well.
  save(Change::kSkyline, -1, lo, hi);
  for (int32_t s = lo; s < hi; ++s) skyline_[s] = std::max(skyline_[s], level_[s]);
  const bool is_solved = solve({rest, pool_.size()}, top);
  pool_.resize(rest);
  if (!is_solved) undo(mark);
  return is_solved;
}

// The section to ask, of those in a valley: a run of sections of equal base_, higher on both sides, so that nothing
// can slip in below a block that starts there.
int32_t BlockSearch::pick_section(Part part, int32_t lo, int32_t hi, int64_t top) {
  std::fill(answers_.begin() + lo, answers_.begin() + hi, 0);
  for (size_t i = part.begin; i < part.end; ++i) {
    const int32_t x = pool_[i];
    if (support_[x] != start_[x]) continue;
    for (int32_t s = blocks_[x].lo; s < blocks_[x].hi; ++s) answers_[s] += base_[s] == start_[x];
  }
  const bool by_room = pick_ == Pick::kFewestAnswersLeastRoom;
  const auto second = [&](int32_t s) { return by_room ? top - base_[s] - remaining_[s] : base_[s]; };
  int32_t best = -1, fewest = 0;
  for (int32_t begin = lo, end = lo; begin < hi; begin = end) {
    while (end < hi && base_[end] == base_[begin]) ++end;
    if ((begin > lo && base_[begin - 1] < base_[begin]) || (end < hi && base_[end] < base_[begin])) continue;
    for (int32_t s = begin; s < end; ++s) {
      const int32_t answers = pick_ == Pick::kLowestLevel ? 0 : answers_[s] + (base_[s] + remaining_[s] < top);
      if (best >= 0 && (answers > fewest || (answers == fewest && second(s) >= second(best)))) continue;
      best = s;
      fewest = answers;
    }
  }
  return best;
}

// The least offset above its base at which something can start in the section: on what was placed, or on a remaining
// block outside the section.
int64_t BlockSearch::next_level(Part part, int32_t section) {
  const int64_t base = base_[section];
  int64_t next = kNever;
  for (size_t i = part.begin; i < part.end; ++i) {
    const int32_t x = pool_[i];
    const SearchedBlock& b = blocks_[x];
    if (b.lo > section || b.hi <= section) continue;
    if (start_[x] > base) {
      next = std::min(next, start_[x]);
      continue;
    }
    looks_ += part.end - part.begin;
    for (size_t j = part.begin; j < part.end; ++j) {
      const SearchedBlock& below = blocks_[pool_[j]];
      const bool is_in_section = below.lo <= section && section < below.hi;
      if (!is_in_section && below.lo < b.hi && b.lo < below.hi) next = std::min(next, start_[pool_[j]] + below.bytes);
    }
  }
  return next;
}

bool BlockSearch::has_twin_before(size_t begin, size_t candidate) const {
  const SearchedBlock& b = blocks_[candidates_[candidate]];
  for (size_t i = begin; i < candidate; ++i) {
    const SearchedBlock& other = blocks_[candidates_[i]];
    if (other.lo == b.lo && other.hi == b.hi && other.bytes == b.bytes) return true;
  }
  return false;
}

bool BlockSearch::place_and_solve(Part part, int32_t block, int64_t at, int64_t top) {
  const size_t mark = changes_.size(), rest = pool_.size();
  place(block, at);
  for (size_t i = part.begin; i < part.end; ++i)
    if (const int32_t x = pool_[i]; x != block) pool_.push_back(x);
  const bool is_solved = solve({rest, pool_.size()}, top);
  pool_.resize(rest);
  if (!is_solved) undo(mark);
  return is_solved;
}

bool BlockSearch::branch(Part part, int32_t section, int64_t top) {
  const int64_t at = base_[section];
  const bool may_stay_empty = at + remaining_[section] < top;
  const int64_t next = may_stay_empty ? next_level(part, section) : kNever;
  const size_t first = candidates_.size();
  for (size_t i = part.begin; i < part.end; ++i) {
    const int32_t x = pool_[i];
    const bool covers = blocks_[x].lo <= section && section < blocks_[x].hi;
    if (covers && start_[x] == at && support_[x] == at) candidates_.push_back(x);
  }
  const size_t last = candidates_.size();
  std::sort(candidates_.begin() + static_cast<ptrdiff_t>(first), candidates_.end(),
            [this](int32_t a, int32_t b) { return rank_[a] < rank_[b]; });
  bool is_solved = false;
  for (size_t c = first; c < last && !is_solved && !is_stopped_; ++c)
    if (!has_twin_before(first, c)) is_solved = place_and_solve(part, candidates_[c], at, top);
  candidates_.resize(first);
  if (is_solved || is_stopped_ || next == kNever || next > top - remaining_[section]) return is_solved;
  save(Change::kLevel, -1, section, section + 1);
  level_[section] = next;
  ++depth_;
  is_solved = solve_connected(part, top);
  --depth_;
  return is_solved;  // on failure the caller takes the level back
}

}  // namespace asc
