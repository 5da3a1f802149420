// Which entry of a full cache makes room where forecasts say what comes next: a pure function of when each is due.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/array_view.h"

namespace asc {

constexpr uint32_t kNotForeseen = ~uint32_t{0};

// For one entry that is to be kept, `due` in so many runs, among others. Where some of these are not foreseen, one of
// them goes, by the cache's own rule; else what comes last goes, which may be the new one.
struct Retention {
  enum class Choice : uint8_t { kUnforeseen, kEntry, kIncoming };
  Choice choice = Choice::kUnforeseen;
  size_t entry = 0;  // that goes, for kEntry
};

Retention choose_victim(ArrayView<const uint32_t> due, uint32_t incoming);

// When signatures are due, looked up by their tags.
class DueTimes {
 public:
  // Tags of what comes, soonest first.
  explicit DueTimes(const std::vector<uint64_t>& coming);
  bool is_empty() const { return runs_.empty(); }
  // Runs until `tag` comes, 1 for the next one; kNotForeseen.
  uint32_t of(uint64_t tag) const;

 private:
  std::vector<std::pair<uint64_t, uint32_t>> runs_;  // by tag
};

// What a cache asks when it is full, and tells; implemented by whoever foresees. Called under the cache's lock.
class Outlook {
 public:
  // One that was taken because all entries are foreseen.
  struct Decision {
    std::vector<uint32_t> due;
    uint32_t incoming = 0;
    Retention made;
  };

  virtual ~Outlook() = default;
  // Tags of what comes, soonest first; empty: nothing that could be relied on.
  virtual std::vector<uint64_t> coming() = 0;
  // An entry with this tag has left.
  virtual void note_gone(uint64_t tag) = 0;
  virtual void note_decision(Decision decision) = 0;
};

}  // namespace asc
