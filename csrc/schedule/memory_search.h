// Exact search for a packing of blocks below a given height: a branch and bound over skylines.
//
// Time is cut into sections; a block covers a run of them and rests on the skyline. A node of the search asks of one
// section, at the lowest level where something may still start there: which block starts exactly here, or none? Each
// packing answers every such question in one way, so that no packing is met twice. What makes it fast:
// - parts whose sections share no remaining block are searched apart: one that fails, fails them all;
// - a block that covers a whole part moves to its top, without branching;
// - per section, what remains must fit above the level; a block that leaves no room for the rest of its section is
//   not the next one there, so it starts above another one; both lift levels until nothing changes;
// - of all sections where nothing can slip in below, the one with the fewest answers is asked first;
// - a state (remaining blocks, levels relative to the top) that failed once is not searched again.
// docs/decisions/0011-arena-by-exact-search.md has the reasons, and why each step keeps at least one solution.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "schedule/failed_states.h"

namespace asc {

// Covers sections [lo, hi), lo < hi.
struct SearchedBlock {
  int32_t lo = 0, hi = 0;
  int64_t bytes = 0;
};

enum class SearchEnd : uint8_t { kFound, kImpossible, kStopped };

class BlockSearch {
 public:
  // Which section is asked: with the fewest answers and the lowest level, or the least room; or at the lowest level.
  enum class Pick : uint8_t { kFewestAnswers, kFewestAnswersLeastRoom, kLowestLevel };
  struct Limits {
    uint64_t steps = 0;
    const std::function<bool()>* should_stop = nullptr;  // asked about every ms
  };

  // `blocks` sorted by lo, each with bytes; their sum fits in 62 bits.
  BlockSearch(std::vector<SearchedBlock> blocks, int32_t sections);

  // Looks for offsets with no end above `height`. Blocks of lower rank are tried first. kImpossible is a proof;
  // kStopped says nothing. Recursive, to a bounded depth: needs some 2 MiB of stack at most.
  SearchEnd run(int64_t height, const std::vector<uint32_t>& rank, Pick pick, Limits limits);

  const std::vector<int64_t>& offsets() const { return offsets_; }  // by block, after kFound
  const std::vector<SearchedBlock>& blocks() const { return blocks_; }
  const std::vector<int64_t>& loads() const { return loads_; }  // by section: bytes of all its blocks
  uint64_t steps() const { return steps_; }                     // of all runs

 private:
  struct Part {
    size_t begin, end;  // in pool_
  };
  struct Change {
    enum Kind : uint8_t { kPlaced, kTopped, kSkyline, kLevel } kind;
    int32_t block;
    int32_t lo, hi;     // sections whose former skyline or level is saved
    size_t saved_from;  // in saved_
  };

  bool solve(Part part, int64_t top);
  bool solve_connected(Part part, int64_t top);
  bool move_spanning_to_top(Part part, int32_t lo, int32_t hi, int64_t top);
  bool branch(Part part, int32_t section, int64_t top);
  bool place_and_solve(Part part, int32_t block, int64_t at, int64_t top);

  int32_t reach(Part part) const;
  bool has_spanning(Part part, int32_t lo, int32_t hi) const;
  bool find_levels(Part part, int32_t lo, int32_t hi, int64_t top);
  bool lift(Part part, int32_t lo, int32_t hi, int64_t top);
  bool lift_once(int32_t lo, int32_t hi, int64_t top, bool& changed);
  StateKey key_of(Part part, int32_t lo, int32_t hi, int64_t top) const;
  int32_t pick_section(Part part, int32_t lo, int32_t hi, int64_t top);
  int64_t next_level(Part part, int32_t section);
  bool has_twin_before(size_t begin, size_t candidate) const;
  bool count_step();

  void save(Change::Kind kind, int32_t block, int32_t lo, int32_t hi);
  void place(int32_t block, int64_t at);
  void undo(size_t mark);

  std::vector<SearchedBlock> blocks_;
  std::vector<StateKey> block_keys_;
  std::vector<int64_t> loads_;
  int32_t sections_;

  // The present run.
  const uint32_t* rank_ = nullptr;
  Pick pick_ = Pick::kFewestAnswers;
  Limits limits_;
  uint64_t steps_ = 0, last_step_ = 0, looks_ = 0;  // looks since it was asked whether to stop
  uint32_t depth_ = 0;
  bool is_stopped_ = false;
  FailedStates failed_;

  // By section. Nothing placed reaches above the skyline; nothing that remains starts below the level.
  std::vector<int64_t> skyline_, level_, remaining_;
  // By section, scratch of one node: where the first block may start; the two lowest ends of a first block, and whose
  // is the lowest; the end of all when packed by lowest start; answers to "what starts at base_".
  std::vector<int64_t> base_, first_end_, second_end_, packed_end_;
  std::vector<int32_t> first_block_, answers_;
  // By block: offset of those placed; scratch: the skyline below it, and the least offset it can have.
  std::vector<int64_t> offsets_, support_, start_;

  // Stacks: remaining blocks of open nodes, candidates of open nodes, parts, changes to take back.
  std::vector<int32_t> pool_, candidates_, order_;
  std::vector<Part> parts_;
  std::vector<Change> changes_;
  std::vector<int64_t> saved_;
};

}  // namespace asc
