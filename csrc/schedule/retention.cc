#include "schedule/retention.h"

#include <algorithm>

namespace asc {

Retention choose_victim(ArrayView<const uint32_t> due, uint32_t incoming) {
  Retention result;
  uint32_t latest = 0;
  for (size_t i = 0; i < due.size(); ++i) {
    if (due[i] == kNotForeseen) return {};
    if (due[i] <= latest) continue;
    latest = due[i];
    result = {Retention::Choice::kEntry, i};
  }
  if (incoming >= latest) return {Retention::Choice::kIncoming, 0};
  return result;
}

DueTimes::DueTimes(const std::vector<uint64_t>& coming) {
  runs_.reserve(coming.size());
  for (uint64_t tag : coming) runs_.emplace_back(tag, static_cast<uint32_t>(runs_.size() + 1));
  std::sort(runs_.begin(), runs_.end());
}

// Of a tag that comes several times, the first time counts.
uint32_t DueTimes::of(uint64_t tag) const {
  const auto found = std::lower_bound(runs_.begin(), runs_.end(), std::make_pair(tag, uint32_t{0}));
  return found == runs_.end() || found->first != tag ? kNotForeseen : found->second;
}

}  // namespace asc
