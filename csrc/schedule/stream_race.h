// Whether a schedule that is estimated to be faster on several streams really is: times both ways, on runs that wait
// for it anyway, and goes the faster one. What other programs leave of the CPUs is no part of an estimate.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace asc {

// Guarded by the executable's lock.
class StreamRace {
 public:
  static constexpr size_t kTries = 6;           // of each way that count
  static constexpr uint64_t kRunsApart = 2000;  // until the next race: others come and go

  // `is_on`: false where the way is set, by who asked for it.
  explicit StreamRace(bool is_on) : is_on_(is_on) {}

  // Which way the next run goes; `can_time`: that run's end will be noted.
  bool next_uses_streams(bool can_time);
  // How long the run took that next_uses_streams(true) was asked for.
  void note(uint64_t ticks);
  // The result in words; empty where there is none yet.
  std::string text() const;

 private:
  // Both ways in turn, some runs each, of which the first does not count: a thread that slept begins late.
  static constexpr size_t kTurn = 4;
  static constexpr size_t kRuns = 2 * (kTries / (kTurn - 1)) * kTurn;

  void decide();

  const bool is_on_;
  bool uses_streams_ = true;  // outside races
  size_t run_ = 0;            // of the present race; kRuns: it is over
  uint64_t runs_since_ = 0;
  bool is_timed_ = false;
  std::array<std::vector<uint64_t>, 2> ticks_;  // one stream, several
  std::array<uint64_t, 2> medians_{};           // of the last race
};

}  // namespace asc
