// Memory plans: the problem's checks, greedy plans, the search's answers, stopping.
#include <doctest/doctest.h>

#include <random>

#include "base/error.h"
#include "schedule/memory_greedy.h"
#include "schedule/memory_memo.h"
#include "schedule/memory_search.h"
#include "schedule/memory_skyline.h"
#include "schedule/memory_solver.h"
#include "schedule/memory_validator.h"

namespace {

using asc::BlockSearch;
using asc::MemoryLimits;
using asc::MemoryProblem;
using asc::MemorySolution;
using asc::SearchedBlock;
using asc::SearchEnd;

// Needs all of 6 bytes, and a greedy order by size does not find it.
const std::vector<SearchedBlock> kTight = {{0, 2, 2}, {0, 1, 4}, {1, 3, 3}, {1, 2, 1}, {2, 4, 3}, {3, 4, 3}};

MemoryProblem random_problem(uint32_t seed, int count) {
  std::minstd_rand random(seed);
  MemoryProblem problem;
  for (int i = 0; i < count; ++i) {
    const int64_t lower = random() % 50;
    problem.buffers.push_back(
        {lower, lower + 1 + static_cast<int64_t>(random() % 20), static_cast<int64_t>(random() % 1000)});
  }
  return problem;
}

SearchEnd search(BlockSearch& blocks, int64_t height, BlockSearch::Pick pick, uint64_t steps = 10'000) {
  std::vector<uint32_t> rank(blocks.blocks().size());
  for (uint32_t i = 0; i < rank.size(); ++i) rank[i] = i;
  return blocks.run(height, rank, pick, {steps, nullptr});
}

}  // namespace

TEST_CASE("the search finds a packing at the optimum and proves that none is lower") {
  for (BlockSearch::Pick pick : {BlockSearch::Pick::kFewestAnswers, BlockSearch::Pick::kLowestLevel}) {
    BlockSearch blocks(kTight, 4);
    CHECK(search(blocks, 5, pick) == SearchEnd::kImpossible);
    CHECK(search(blocks, 6, pick) == SearchEnd::kFound);
    for (size_t i = 0; i < kTight.size(); ++i) CHECK(blocks.offsets()[i] + kTight[i].bytes <= 6);
    CHECK(search(blocks, 5, pick) == SearchEnd::kImpossible);  // the run before left nothing behind
  }
}

TEST_CASE("a search without steps says nothing") {
  BlockSearch blocks(kTight, 4);
  CHECK(search(blocks, 6, BlockSearch::Pick::kFewestAnswers, 1) == SearchEnd::kStopped);
  CHECK(search(blocks, 6, BlockSearch::Pick::kFewestAnswers) == SearchEnd::kFound);
}

TEST_CASE("a search without blocks is done") {
  BlockSearch blocks({}, 0);
  CHECK(search(blocks, 0, BlockSearch::Pick::kFewestAnswers) == SearchEnd::kFound);
}

TEST_CASE("the skyline gives every block a place, and ends when told to") {
  const std::vector<int64_t> loads = {6, 6, 6, 6};
  const std::vector<uint32_t> rank = {0, 1, 2, 3, 4, 5};
  const std::vector<int64_t> at = asc::plan_on_skyline(kTight, loads, rank, [] { return false; });
  REQUIRE(at.size() == kTight.size());
  for (size_t i = 0; i < at.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const SearchedBlock &a = kTight[i], &b = kTight[j];
      const bool is_apart = a.lo >= b.hi || b.lo >= a.hi;
      CHECK((is_apart || at[i] >= at[j] + b.bytes || at[j] >= at[i] + a.bytes));
    }
  CHECK(asc::plan_on_skyline({}, {}, {}, [] { return false; }).empty());

  const std::vector<SearchedBlock> many(400, {0, 1, 1});
  std::vector<uint32_t> ranks(many.size());
  for (uint32_t i = 0; i < ranks.size(); ++i) ranks[i] = i;
  CHECK(asc::plan_on_skyline(many, {400}, ranks, [] { return true; }).empty());
}

TEST_CASE("random plans are valid, aligned and not below their bound") {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    MemoryProblem problem = random_problem(seed, 60);
    problem.alignment = seed % 3 ? 64 : 1;
    if (seed % 4 == 0) problem.conflicts = {{0, 1}, {2, 50}};
    MemoryLimits limits;
    limits.steps = 500;
    const MemorySolution solution = asc::solve_memory(problem, limits);
    CAPTURE(seed);
    CHECK(asc::find_fault(problem, solution) == "");
    CHECK(solution.lower_bound <= solution.height);
    CHECK(solution.lower_bound >= asc::max_live_bytes(problem));
  }
}

TEST_CASE("a plan that is stopped at once is valid") {
  const MemoryProblem problem = random_problem(7, 200);
  MemoryLimits limits;
  limits.steps = 1'000'000;
  limits.should_stop = [] { return true; };
  const MemorySolution solution = asc::solve_memory(problem, limits);
  CHECK(asc::find_fault(problem, solution) == "");
  CHECK(solution.steps == 0);
}

TEST_CASE("an exception of should_stop passes through") {
  const MemoryProblem problem = random_problem(7, 200);
  MemoryLimits limits;
  limits.should_stop = []() -> bool { throw asc::DeviceError("stop"); };
  CHECK_THROWS_AS(asc::solve_memory(problem, limits), asc::DeviceError);
}

TEST_CASE("a malformed problem is refused") {
  MemoryProblem problem;
  problem.buffers = {{0, 1, 8}, {2, 2, 8}};
  CHECK_THROWS_AS(asc::solve_memory(problem, {}), asc::PlanError);
  problem.buffers = {{0, 1, INT64_MAX}};
  CHECK_THROWS_AS(asc::solve_memory(problem, {}), asc::PlanError);
  problem.buffers = {{0, 1, 8}};
  problem.alignment = 0;
  CHECK_THROWS_AS(asc::solve_memory(problem, {}), asc::PlanError);
}

TEST_CASE("plans that follow the one before are valid and optimal") {
  asc::MemoryMemo memo;
  MemoryLimits limits;
  limits.steps = 500;
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    MemoryProblem problem = random_problem(seed, 40);
    problem.alignment = 64;
    for (int round = 0; round < 6; ++round) {
      const uint64_t before = memo.followed();
      const MemorySolution solution = memo.solve(problem, limits);
      CAPTURE(seed);
      CAPTURE(round);
      CHECK(asc::find_fault(problem, solution) == "");
      CHECK(solution.lower_bound >= asc::max_live_bytes(problem));
      CHECK(solution.lower_bound <= solution.height);
      if (memo.followed() > before) CHECK(solution.is_optimal());
      for (asc::MemoryBuffer& b : problem.buffers) b.bytes += (seed + static_cast<uint32_t>(round)) % 3 * 64;
    }
  }
  CHECK(memo.followed() > 0);
}

TEST_CASE("a plan follows the one before where only sizes changed, and shrinks with them") {
  asc::MemoryMemo memo;
  MemoryProblem problem;
  problem.buffers = {{0, 2, 64}, {1, 3, 128}, {2, 4, 64}, {0, 4, 0}};
  problem.alignment = 64;
  CHECK(memo.solve(problem, {}).height == 192);
  problem.buffers[1].bytes = 1000;
  CHECK(memo.solve(problem, {}).height == 64 + 1024);
  problem.buffers[1].bytes = 0;
  CHECK(memo.solve(problem, {}).height == 64);
  CHECK(memo.followed() == 2);
  problem.buffers[3].upper = 5;
  CHECK(memo.solve(problem, {}).height == 64);
  CHECK(memo.followed() == 2);
}

TEST_CASE("a plan with conflicts, over very long times, or of nothing is made anew") {
  asc::MemoryMemo memo;
  for (int round = 0; round < 2; ++round) {
    MemoryProblem problem;
    CHECK(memo.solve(problem, {}).height == 0);
    problem.buffers = {{0, 1, 64 + round}, {1, 2, 64}};
    problem.conflicts = {{0, 1}};
    const MemorySolution solution = memo.solve(problem, {});
    CHECK(asc::find_fault(problem, solution) == "");
  }
  for (int round = 0; round < 2; ++round) {
    MemoryProblem problem;
    problem.buffers = {{INT64_MIN, INT64_MAX, 64 + round}, {0, 1, 64}};
    CHECK(memo.solve(problem, {}).height == 128 + round);
  }
  CHECK(memo.followed() == 0);
}
