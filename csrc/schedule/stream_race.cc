#include "schedule/stream_race.h"

#include <algorithm>
#include <cstdio>

#include "profile/clock.h"

namespace asc {

bool StreamRace::next_uses_streams(bool can_time) {
  if (!is_on_) return true;
  is_timed_ = can_time && run_ < kRuns;
  if (is_timed_) return run_ / kTurn % 2 == 0;
  if (run_ == kRuns && ++runs_since_ == kRunsApart) run_ = runs_since_ = 0;
  return uses_streams_;
}

void StreamRace::note(uint64_t ticks) {
  if (!is_timed_) return;
  if (run_ % kTurn) ticks_[run_ / kTurn % 2 == 0].push_back(ticks);
  if (++run_ == kRuns) decide();
}

void StreamRace::decide() {
  for (size_t way = 0; way < 2; ++way) {
    std::vector<uint64_t>& t = ticks_[way];
    std::nth_element(t.begin(), t.begin() + t.size() / 2, t.end());
    medians_[way] = t[t.size() / 2];
    t.clear();
  }
  uses_streams_ = medians_[1] < medians_[0];
}

std::string StreamRace::text() const {
  if (!medians_[0]) return "";
  char text[96];
  std::snprintf(text, sizeof(text), "measured %.1f us, one stream %.1f us: %s",
                static_cast<double>(medians_[1]) * ns_per_tick() * 1e-3,
                static_cast<double>(medians_[0]) * ns_per_tick() * 1e-3, uses_streams_ ? "several" : "one for now");
  return text;
}

}  // namespace asc
