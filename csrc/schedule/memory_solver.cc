#include "schedule/memory_solver.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <random>

#include "schedule/memory_greedy.h"
#include "schedule/memory_search.h"
#include "schedule/memory_sections.h"
#include "schedule/memory_skyline.h"

namespace asc {
namespace {

using Pick = BlockSearch::Pick;

constexpr uint64_t kFirstTrySteps = 2000;
constexpr size_t kMostSearched = 4000;  // blocks; a step takes a time that grows with them, and many steps nest
constexpr uint64_t kBlocksPerStep = 8;  // of a dive, for about the time of a step
constexpr int64_t kMostParts = 8;       // the least step down tried is this part of the way to the goal

// What makes a block worth placing early.
enum class Urgency : uint8_t { kLoadThenBytes, kBytes, kLoadThenLength, kLoadThenArea, kArea, kLength };

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

// What decides between blocks over the section with the least room.
constexpr Urgency kDives[] = {Urgency::kLoadThenLength, Urgency::kLength, Urgency::kArea, Urgency::kBytes};

// One way to look at the problem: forwards or backwards in time.
struct View {
  explicit View(Sections made) : sections(std::move(made)), search(sections.blocks, sections.count) {}
  const Sections sections;
  BlockSearch search;
};

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
  // the best plan, so that there is a better plan to show when the budget ends. Where time runs backwards, ties are
  // broken the other way round: whichever way is luckier decides.
  void search() {
    Sections sections = make_sections(problem_);
    views_.emplace_back(mirrored(sections));
    views_.emplace_front(std::move(sections));
    for (uint64_t steps = kFirstTrySteps; !is_over(); steps += steps / 2) {
      dive();
      if (views_.front().sections.blocks.size() <= kMostSearched) search_for(steps);
      ++round_;
    }
  }

  void search_for(uint64_t steps) {
    const int64_t goal = std::max(limits_.capacity, solution_.lower_bound), unit = views_.front().sections.unit;
    try_height(goal, steps);
    bool is_better = true;
    for (int64_t part = 2; is_better || part <= kMostParts; part *= is_better ? 1 : 2) {
      if (is_over() || solution_.height - goal <= 2 * unit) break;
      is_better = try_height(solution_.height - (solution_.height - goal) / part, steps);
    }
  }

  // Straight down, without coming back: plans at once where the search needs long, as for thousands of blocks.
  void dive() {
    for (Urgency urgency : kDives)
      for (const View& view : views_) {
        if (is_over()) return;
        const std::vector<uint32_t> rank = rank_blocks(view.search, urgency);
        solution_.steps += 1 + rank.size() / kBlocksPerStep;
        keep(view, plan_on_skyline(view.sections.blocks, view.search.loads(), rank, stop_and_remember_));
      }
  }

  bool try_height(int64_t height, uint64_t steps) {
    for (const Strategy& strategy : kStrategies)
      for (View& view : views_) {
        if (is_over()) return false;
        const std::vector<uint32_t> rank = rank_blocks(view.search, strategy.urgency);
        const uint64_t before = view.search.steps(), left = limits_.steps - solution_.steps;
        const SearchEnd end = view.search.run(height / view.sections.unit, rank, strategy.pick,
                                              {std::min(steps, left), &stop_and_remember_});
        solution_.steps += view.search.steps() - before;
        if (end == SearchEnd::kFound) {
          keep(view, view.search.offsets());
          return true;
        }
        if (end == SearchEnd::kImpossible) {
          // All ends of a plan can be sums of sizes, so the next height is a multiple of the unit.
          const int64_t next = (height / view.sections.unit + 1) * view.sections.unit;
          solution_.lower_bound = std::min(solution_.height, std::max(solution_.lower_bound, next));
          return false;
        }
      }
    return false;
  }

  void keep(const View& view, const std::vector<int64_t>& block_offsets) {
    if (block_offsets.empty()) return;
    std::vector<int64_t> offsets = dropped_offsets(view.sections, block_offsets, problem_.buffers.size());
    const int64_t height = height_of(problem_, offsets);
    if (height >= solution_.height) return;
    solution_.offsets = std::move(offsets);
    solution_.height = height;
    limits_.on_better(height, solution_.lower_bound);
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
        case Urgency::kLength:
          keys[i] = {length, bytes};
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
  std::deque<View> views_;  // forwards and backwards
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
