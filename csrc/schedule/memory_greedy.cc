#include "schedule/memory_greedy.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace asc {
namespace {

using Order = std::vector<uint32_t>;

constexpr size_t kComparisons = 200'000'000;

class Greedy {
 public:
  Greedy(const MemoryProblem& problem, const std::function<bool()>& should_stop)
      : problem_(problem), should_stop_(should_stop), bytes_(problem.buffers.size()), also_(problem.buffers.size()) {
    for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = aligned_bytes(problem, i);
    for (const auto& [a, b] : problem.conflicts) {
      also_[a].push_back(b);
      also_[b].push_back(a);
    }
  }

  // Best fit among the gaps as time goes by. With explicit conflicts it is no plan: everything is put side by side.
  std::vector<int64_t> by_time() const {
    std::vector<int64_t> offsets(bytes_.size(), 0);
    if (!problem_.conflicts.empty()) {
      int64_t end = 0;
      for (size_t i = 0; i < offsets.size(); end += bytes_[i++]) offsets[i] = end;
      return offsets;
    }
    std::vector<uint32_t> starts(bytes_.size()), ends;
    std::iota(starts.begin(), starts.end(), 0u);
    ends = starts;
    const std::vector<MemoryBuffer>& b = problem_.buffers;
    std::stable_sort(starts.begin(), starts.end(), [&](uint32_t x, uint32_t y) { return b[x].lower < b[y].lower; });
    std::stable_sort(ends.begin(), ends.end(), [&](uint32_t x, uint32_t y) { return b[x].upper < b[y].upper; });
    std::map<int64_t, int64_t> gaps;  // begin -> end
    gaps[0] = INT64_MAX;
    size_t ended = 0;
    for (uint32_t x : starts) {
      for (; b[ends[ended]].upper <= b[x].lower; ++ended) release(gaps, offsets[ends[ended]], bytes_[ends[ended]]);
      if (bytes_[x]) offsets[x] = take(gaps, bytes_[x]);
    }
    return offsets;
  }

  // Each at the lowest offset among those placed before it; empty when stopped.
  std::vector<int64_t> in_order(const Order& order) const {
    std::vector<int64_t> offsets(bytes_.size(), 0);
    std::vector<uint32_t> placed;  // by offset
    std::vector<bool> is_other(also_.size(), false);
    for (uint32_t x : order) {
      if (should_stop_()) return {};
      for (uint32_t other : also_[x]) is_other[other] = true;
      const MemoryBuffer& b = problem_.buffers[x];
      int64_t at = 0;
      for (uint32_t p : placed) {
        const MemoryBuffer& other = problem_.buffers[p];
        if (!is_other[p] && (other.lower >= b.upper || b.lower >= other.upper)) continue;
        if (at + bytes_[x] <= offsets[p]) break;
        at = std::max(at, offsets[p] + bytes_[p]);
      }
      offsets[x] = at;
      const auto where = std::upper_bound(placed.begin(), placed.end(), at,
                                          [&](int64_t value, uint32_t p) { return value < offsets[p]; });
      placed.insert(where, x);
      for (uint32_t other : also_[x]) is_other[other] = false;
    }
    return offsets;
  }

  // Buffers without bytes take no part; the largest key comes first.
  template <typename KeyOf>
  Order order_by(const KeyOf& key_of) const {
    Order order;
    for (uint32_t i = 0; i < bytes_.size(); ++i)
      if (bytes_[i]) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return key_of(a) > key_of(b); });
    return order;
  }

  double bytes(uint32_t i) const { return static_cast<double>(bytes_[i]); }
  double length(uint32_t i) const {
    return static_cast<double>(problem_.buffers[i].upper) - static_cast<double>(problem_.buffers[i].lower);
  }

 private:
  static int64_t take(std::map<int64_t, int64_t>& gaps, int64_t bytes) {
    auto best = gaps.end();
    for (auto gap = gaps.begin(); gap != gaps.end(); ++gap)
      if (gap->second - gap->first >= bytes &&
          (best == gaps.end() || gap->second - gap->first < best->second - best->first))
        best = gap;
    const int64_t at = best->first, end = best->second;
    gaps.erase(best);
    if (at + bytes < end) gaps[at + bytes] = end;
    return at;
  }

  static void release(std::map<int64_t, int64_t>& gaps, int64_t at, int64_t bytes) {
    if (!bytes) return;
    int64_t end = at + bytes;
    auto next = gaps.lower_bound(at);
    if (next != gaps.end() && next->first == end) {
      end = next->second;
      next = gaps.erase(next);
    }
    if (next != gaps.begin() && std::prev(next)->second == at)
      std::prev(next)->second = end;
    else
      gaps[at] = end;
  }

  const MemoryProblem& problem_;
  const std::function<bool()>& should_stop_;
  std::vector<int64_t> bytes_;
  std::vector<std::vector<uint32_t>> also_;  // explicit conflicts, by buffer
};

}  // namespace

std::vector<int64_t> plan_greedily(const MemoryProblem& problem, int64_t goal,
                                   const std::function<bool()>& should_stop) {
  const Greedy greedy(problem, should_stop);
  std::vector<int64_t> best = greedy.by_time();
  int64_t height = height_of(problem, best);
  const std::function<double(uint32_t)> keys[] = {
      [&](uint32_t i) { return greedy.bytes(i); },
      [&](uint32_t i) { return greedy.bytes(i) * greedy.length(i); },
      [&](uint32_t i) { return greedy.length(i); },
      [&](uint32_t i) { return greedy.bytes(i) * greedy.bytes(i) * greedy.length(i); },
      [&](uint32_t i) { return -static_cast<double>(problem.buffers[i].lower); },
  };
  const size_t n = problem.buffers.size(), cost = n * n / 2 + 1;
  size_t left = kComparisons;
  for (const auto& key : keys) {
    if (height <= goal || cost > left || should_stop()) break;
    left -= cost;
    std::vector<int64_t> offsets = greedy.in_order(greedy.order_by(key));
    if (offsets.empty()) break;
    if (const int64_t h = height_of(problem, offsets); h < height) {
      height = h;
      best = std::move(offsets);
    }
  }
  return best;
}

}  // namespace asc
