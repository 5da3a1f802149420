#include "schedule/retention.h"

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
  uint32_t runs = 0;
  for (uint64_t tag : coming) runs_.emplace(tag, ++runs);  // the first time counts
}

uint32_t DueTimes::of(uint64_t tag) const {
  const auto found = runs_.find(tag);
  return found == runs_.end() ? kNotForeseen : found->second;
}

}  // namespace asc
