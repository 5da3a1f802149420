// Foresees the next of several sequences of signatures that take turns, each with a stride of its own: what came one
// round ago, and as much more as that was more than what came two rounds ago. One round has 2 to 8 signatures.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/array_view.h"

namespace asc {

class InterleavedStrides {
 public:
  using Signature = std::vector<int64_t>;

  // Sees every signature once, in order.
  void observe(ArrayView<const int64_t> signature);
  // The next one; false: no idea.
  bool next(Signature& signature) const;

 private:
  static constexpr size_t kMostTurns = 8, kSeen = 2 * kMostTurns + 1;

  const Signature& ago(size_t n) const { return seen_[(count_ - n) % kSeen]; }  // 1: the last one
  bool keeps_stride(size_t turns) const;

  std::array<Signature, kSeen> seen_;
  uint64_t count_ = 0;
  std::array<uint64_t, kMostTurns + 1> kept_{};  // by turns of a round: signatures that were right, one after the other
};

}  // namespace asc
