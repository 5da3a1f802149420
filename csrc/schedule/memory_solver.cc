#include "schedule/memory_solver.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "schedule/memory_greedy.h"
#include "schedule/memory_search.h"

namespace asc {
namespace {

using Pick = BlockSearch::Pick;

constexpr uint64_t kFirstTrySteps = 2000;
constexpr int64_t kMostParts = 8;  // the least step down tried is this part of the way to the goal

// What makes a block worth placing early.
enum class Urgency : uint8_t { kLoadThenBytes, kBytes, kLoadThenLength, kLoadThenArea, kArea };

struct Strategy {
  Urgency urgency;
  Pick pick;
};
constexpr Strategy kStrategies[] = {
    {Urgency::kLoadThenBytes, Pick::kFewestAnswers},  {Urgency::kBytes, Pick::kFewestAnswers},
    {Urgency::kLoadThenLength, Pick::kFewestAnswers}, {Urgency::kLoadThenLength, Pick::kLowestLevel},
    {Urgency::kLoadThenArea, Pick::kFewestAnswers},   {Urgency::kBytes, Pick::kLowestLevel},
    {Urgency::kArea, Pick::kFewestAnswersLeastRoom},  {Urgency::kLoadThenLength, Pick::kFewestAnswersLeastRoom},
    {Urgency::kLoadThenArea, Pick::kLowestLevel},     {Urgency::kLoadThenBytes, Pick::kFewestAnswersLeastRoom},
};

// The buffers with bytes as blocks over sections: the times at which no other moment's set of live buffers is a
// superset. Sizes are in units of their greatest common divisor.
struct Sections {
  std::vector<uint32_t> buffer_of;  // by block
  std::vector<SearchedBlock> blocks;
  int32_t count = 0;
  int64_t unit = 1;
};

Sections make_sections(const MemoryProblem& problem) {
  Sections sections;
  struct Event {
    int64_t time;
    bool is_start;
  };
  std::vector<Event> events;
  for (uint32_t i = 0; i < problem.buffers.size(); ++i) {
    if (!problem.buffers[i].bytes) continue;
    sections.buffer_of.push_back(i);
    events.push_back({problem.buffers[i].lower, true});
    events.push_back({problem.buffers[i].upper, false});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.time != b.time ? a.time < b.time : a.is_start < b.is_start;
  });
  std::vector<int64_t> ends;  // of sections: the first end after a start
  for (size_t i = 1; i < events.size(); ++i)
    if (!events[i].is_start && events[i - 1].is_start) ends.push_back(events[i].time);
  sections.count = static_cast<int32_t>(ends.size());
  int64_t unit = 0;
  for (uint32_t i : sections.buffer_of) unit = std::gcd(unit, aligned_bytes(problem, i));
  sections.unit = std::max<int64_t>(unit, 1);
  std::stable_sort(sections.buffer_of.begin(), sections.buffer_of.end(),
                   [&](uint32_t a, uint32_t b) { return problem.buffers[a].lower < problem.buffers[b].lower; });
  for (uint32_t i : sections.buffer_of) {
    const MemoryBuffer& b = problem.buffers[i];
    const auto lo = std::upper_bound(ends.begin(), ends.end(), b.lower) - ends.begin();
    const auto hi = std::upper_bound(ends.begin(), ends.end(), b.upper) - ends.begin();
    sections.blocks.push_back(
        {static_cast<int32_t>(lo), static_cast<int32_t>(hi), aligned_bytes(problem, i) / sections.unit});
  }
  return sections;
}

class Solver {
 public:
  Solver(const MemoryProblem& problem, const MemoryLimits& limits) : problem_(problem), limits_(limits) {}

  MemorySolution solve() {
    solution_.lower_bound = max_live_bytes(problem_);
    const int64_t goal = std::max({limits_.capacity, limits_.small, solution_.lower_bound});
    solution_.offsets = plan_greedily(problem_, goal, limits_.should_stop);
    solution_.height = height_of(problem_, solution_.offsets);
    limits_.on_better(solution_.height, solution_.lower_bound);
    if (!is_done() && limits_.steps && problem_.conflicts.empty()) search();
    return std::move(solution_);
  }

 private:
  // Met, or proved out of reach.
  bool is_done() const {
    if (solution_.is_optimal() || solution_.height <= limits_.small) return true;
    return limits_.capacity >= 0 && (solution_.height <= limits_.capacity || solution_.lower_bound > limits_.capacity);
  }
  bool is_over() {
    is_stopped_ = is_stopped_ || limits_.should_stop();
    return is_stopped_ || is_done() || solution_.steps >= limits_.steps;
  }

  // Rounds of ever longer tries. Each goes for the goal itself with every strategy, then for heights between it and
  // the best plan, so that there is a better plan to show when the budget ends.
  void search() {
    sections_ = make_sections(problem_);
    BlockSearch search(sections_.blocks, sections_.count);
    for (uint64_t steps = kFirstTrySteps; !is_over(); steps += steps / 2) {
      const int64_t goal = std::max(limits_.capacity, solution_.lower_bound);
      try_height(search, goal, steps);
      bool is_better = true;
      for (int64_t part = 2; is_better || part <= kMostParts; part *= is_better ? 1 : 2) {
        if (is_over() || solution_.height - goal <= 2 * sections_.unit) break;
        is_better = try_height(search, solution_.height - (solution_.height - goal) / part, steps);
      }
      ++round_;
    }
  }

  bool try_height(BlockSearch& search, int64_t height, uint64_t steps) {
    for (const Strategy& strategy : kStrategies) {
      if (is_over()) return false;
      const std::vector<uint32_t> rank = rank_blocks(search, strategy.urgency);
      const uint64_t left = limits_.steps - solution_.steps;
      const SearchEnd end =
          search.run(height / sections_.unit, rank, strategy.pick, {std::min(steps, left), &stop_and_remember_});
      solution_.steps = search.steps();
      if (end == SearchEnd::kFound) {
        keep(search);
        return true;
      }
      if (end == SearchEnd::kImpossible) {
        // All ends of a plan can be sums of sizes, so the next height is a multiple of the unit.
        const int64_t next = (height / sections_.unit + 1) * sections_.unit;
        solution_.lower_bound = std::min(solution_.height, std::max(solution_.lower_bound, next));
        return false;
      }
    }
    return false;
  }

  void keep(const BlockSearch& search) {
    std::vector<int64_t> offsets(problem_.buffers.size(), 0);
    for (size_t i = 0; i < sections_.buffer_of.size(); ++i)
      offsets[sections_.buffer_of[i]] = search.offsets()[i] * sections_.unit;
    offsets = drop(offsets);
    const int64_t height = height_of(problem_, offsets);
    if (height >= solution_.height) return;
    solution_.offsets = std::move(offsets);
    solution_.height = height;
    limits_.on_better(height, solution_.lower_bound);
  }

  // Blocks that the search put at the top fall onto what lies below them.
  std::vector<int64_t> drop(const std::vector<int64_t>& offsets) const {
    std::vector<uint32_t> order(sections_.blocks.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return offsets[sections_.buffer_of[a]] < offsets[sections_.buffer_of[b]];
    });
    std::vector<int64_t> skyline(static_cast<size_t>(sections_.count), 0), dropped(offsets.size(), 0);
    for (uint32_t x : order) {
      const auto lo = skyline.begin() + sections_.blocks[x].lo, hi = skyline.begin() + sections_.blocks[x].hi;
      const int64_t at = *std::max_element(lo, hi);
      dropped[sections_.buffer_of[x]] = at;
      std::fill(lo, hi, at + sections_.blocks[x].bytes * sections_.unit);
    }
    return dropped;
  }

  // From the second round on, keys vary at random, from a fixed seed.
  std::vector<uint32_t> rank_blocks(const BlockSearch& search, Urgency urgency) {
    struct Key {
      double first, second;
    };
    const size_t n = search.blocks().size();
    std::vector<Key> keys(n);
    for (size_t i = 0; i < n; ++i) {
      const SearchedBlock& b = search.blocks()[i];
      const double bytes = vary(static_cast<double>(b.bytes)), length = vary(b.hi - b.lo);
      const double load =
          vary(static_cast<double>(*std::max_element(search.loads().begin() + b.lo, search.loads().begin() + b.hi)));
      switch (urgency) {
        case Urgency::kLoadThenBytes:
          keys[i] = {load, bytes};
          break;
        case Urgency::kBytes:
          keys[i] = {bytes, length};
          break;
        case Urgency::kLoadThenLength:
          keys[i] = {load, length};
          break;
        case Urgency::kLoadThenArea:
          keys[i] = {load, bytes * length};
          break;
        case Urgency::kArea:
          keys[i] = {bytes * length, bytes};
          break;
      }
    }
    std::vector<uint32_t> order(n), rank(n);
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return keys[a].first != keys[b].first ? keys[a].first > keys[b].first : keys[a].second > keys[b].second;
    });
    for (uint32_t i = 0; i < n; ++i) rank[order[i]] = i;
    return rank;
  }

  double vary(double value) {
    if (!round_) return value;
    return value * (1 + 0.25 * static_cast<double>(random_() >> 8) / static_cast<double>(1u << 24));
  }

  const MemoryProblem& problem_;
  const MemoryLimits& limits_;
  MemorySolution solution_;
  Sections sections_;
  std::minstd_rand random_{1};
  uint32_t round_ = 0;
  bool is_stopped_ = false;
  const std::function<bool()> stop_and_remember_ = [this] {
    is_stopped_ = is_stopped_ || limits_.should_stop();
    return is_stopped_;
  };
};

}  // namespace

MemorySolution solve_memory(const MemoryProblem& problem, const MemoryLimits& limits) {
  check_problem(problem);
  return Solver(problem, limits).solve();
}

}  // namespace asc
