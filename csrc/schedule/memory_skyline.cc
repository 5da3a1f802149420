#include "schedule/memory_skyline.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace asc {
namespace {

constexpr int64_t kLooksPerCheck = 1 << 16;  // between two questions whether to stop

class Skyline {
 public:
  Skyline(const std::vector<SearchedBlock>& blocks, const std::vector<int64_t>& loads,
          const std::vector<uint32_t>& rank)
      : blocks_(blocks), rank_(rank), remaining_(loads), starting_(loads.size()), offsets_(blocks.size(), 0) {
    for (int32_t x = 0; x < static_cast<int32_t>(blocks.size()); ++x)
      starting_[static_cast<size_t>(blocks[x].lo)].push_back(x);
    if (!loads.empty()) insert(0, static_cast<int32_t>(loads.size()), 0);
  }

  std::vector<int64_t> plan(const std::function<bool()>& should_stop) {
    int64_t looks_at_check = 0;
    for (size_t placed = 0; placed < blocks_.size();) {
      if (looks_ - looks_at_check >= kLooksPerCheck) {
        looks_at_check = looks_;
        if (should_stop()) return {};
      }
      const auto [level, lo] = *by_level_.begin();
      const int32_t hi = runs_.at(lo).hi;
      const int32_t x = pick(lo, hi);
      erase(lo);
      if (x < 0) {
        insert(lo, hi, level_beside(lo, hi));
        join(lo);
      } else {
        place(x, lo, hi, level);
        ++placed;
      }
      ++looks_;
    }
    return std::move(offsets_);
  }

 private:
  struct Run {  // of sections at one level
    int32_t hi;
    int64_t level;
  };

  // Of the blocks inside the valley, one where least room is left above it; -1 where there is none.
  int32_t pick(int32_t lo, int32_t hi) {
    int32_t best = -1;
    int64_t best_load = 0;
    for (int32_t s = lo; s < hi; ++s)
      for (int32_t x : starting_[static_cast<size_t>(s)]) {
        const SearchedBlock& b = blocks_[x];
        ++looks_;
        if (b.hi > hi) continue;
        looks_ += b.hi - b.lo;
        const int64_t load = *std::max_element(remaining_.begin() + b.lo, remaining_.begin() + b.hi);
        if (best >= 0 && (load < best_load || (load == best_load && rank_[x] > rank_[best]))) continue;
        best = x;
        best_load = load;
      }
    return best;
  }

  void place(int32_t x, int32_t lo, int32_t hi, int64_t level) {
    const SearchedBlock& b = blocks_[x];
    offsets_[x] = level;
    for (int32_t s = b.lo; s < b.hi; ++s) remaining_[s] -= b.bytes;
    std::vector<int32_t>& same = starting_[static_cast<size_t>(b.lo)];
    same.erase(std::find(same.begin(), same.end(), x));
    if (lo < b.lo) insert(lo, b.lo, level);
    if (b.hi < hi) insert(b.hi, hi, level);
    insert(b.lo, b.hi, level + b.bytes);
    join(b.lo);
  }

  // Nothing fits into the valley: it fills up to its lower side. There is one: a run over all sections holds any block.
  int64_t level_beside(int32_t lo, int32_t hi) const {
    const auto left = runs_.lower_bound(lo);
    const auto right = runs_.find(hi);
    int64_t level = right == runs_.end() ? INT64_MAX : right->second.level;
    if (left != runs_.begin()) level = std::min(level, std::prev(left)->second.level);
    return level;
  }

  // Neighbours at the level of the run that starts here become one with it.
  void join(int32_t lo) {
    auto run = runs_.find(lo);
    if (run != runs_.begin() && std::prev(run)->second.level == run->second.level) --run;
    for (auto next = std::next(run); next != runs_.end() && next->second.level == run->second.level;
         next = std::next(run)) {
      run->second.hi = next->second.hi;
      erase(next->first);
    }
  }

  void insert(int32_t lo, int32_t hi, int64_t level) {
    runs_[lo] = {hi, level};
    by_level_.insert({level, lo});
  }
  void erase(int32_t lo) {
    by_level_.erase({runs_.at(lo).level, lo});
    runs_.erase(lo);
  }

  const std::vector<SearchedBlock>& blocks_;
  const std::vector<uint32_t>& rank_;
  std::vector<int64_t> remaining_;              // by section: bytes of blocks that are not placed
  std::vector<std::vector<int32_t>> starting_;  // by section: blocks that begin there and are not placed
  std::vector<int64_t> offsets_;
  std::map<int32_t, Run> runs_;  // by first section
  std::set<std::pair<int64_t, int32_t>> by_level_;
  int64_t looks_ = 0;
};

}  // namespace

std::vector<int64_t> plan_on_skyline(const std::vector<SearchedBlock>& blocks, const std::vector<int64_t>& loads,
                                     const std::vector<uint32_t>& rank, const std::function<bool()>& should_stop) {
  return Skyline(blocks, loads, rank).plan(should_stop);
}

}  // namespace asc
