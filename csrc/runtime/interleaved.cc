#include "runtime/interleaved.h"

namespace asc {

void InterleavedStrides::observe(ArrayView<const int64_t> signature) {
  seen_[count_++ % kSeen].assign(signature.begin(), signature.end());
  for (size_t turns = 1; turns <= kMostTurns; ++turns) kept_[turns] = keeps_stride(turns) ? kept_[turns] + 1 : 0;
}

// Whether the last signature is what it would have been foreseen to be.
bool InterleavedStrides::keeps_stride(size_t turns) const {
  if (count_ <= 2 * turns) return false;
  const Signature &now = ago(1), &before = ago(1 + turns), &first = ago(1 + 2 * turns);
  if (now.size() != before.size() || before.size() != first.size()) return false;
  for (size_t i = 0; i < now.size(); ++i) {
    const auto a = static_cast<uint64_t>(now[i]), b = static_cast<uint64_t>(before[i]);
    if (a - b != b - static_cast<uint64_t>(first[i])) return false;
  }
  return true;
}

bool InterleavedStrides::next(Signature& signature) const {
  size_t turns = 1;
  for (size_t more = 2; more <= kMostTurns; ++more)
    if (kept_[more] > kept_[turns]) turns = more;
  // One sequence alone is for others to foresee. Of several, all must have kept their strides twice.
  if (turns == 1 || kept_[turns] < 2 * turns) return false;
  const Signature &before = ago(turns), &first = ago(2 * turns);
  if (before.size() != first.size()) return false;
  signature.resize(before.size());
  for (size_t i = 0; i < before.size(); ++i) {
    int64_t stride = 0;
    if (__builtin_sub_overflow(before[i], first[i], &stride) ||
        __builtin_add_overflow(before[i], stride, &signature[i]) || signature[i] < 0)
      return false;
  }
  return true;
}

}  // namespace asc
