// Foresees the next signature by a vote of simple predictors, each with the weight of its success so far. A signature
// here is a list of whole numbers. Bounded in memory; not thread-safe. Knows no thread and no clock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/array_view.h"
#include "runtime/interleaved.h"
#include "runtime/predictors.h"

namespace asc {

class Forecast {
 public:
  using Signature = std::vector<int64_t>;

  Forecast();

  // Judges what was foreseen by what came, and foresees what comes next; null: no idea yet. Valid until the next call.
  const Signature* observe(ArrayView<const int64_t> signature);

  // The hash of what is foreseen; 0: no idea.
  uint64_t next() const { return next_; }
  // What comes, soonest first: a whole period where there is one, else what is foreseen alone.
  std::vector<uint64_t> coming() const;
  // Whether a signature was seen, lately or among few.
  bool has_seen(uint64_t symbol) { return signatures_.find(symbol) != nullptr; }
  // The share of forecasts that were right lately, from 0 to 1.
  double confidence() const { return confidence_; }
  // Signatures seen, those for which there was a forecast, and those that were foreseen exactly.
  uint64_t observed() const { return observed_; }
  uint64_t foreseen() const { return foreseen_; }
  uint64_t right() const { return right_; }
  // The recent success of each predictor, from 0 to 1, by name.
  std::vector<std::pair<std::string, double>> rates() const;

  static uint64_t symbol_of(ArrayView<const int64_t> numbers);

 private:
  // What a member foresees: a signature, the step to it (the last one's makes it the stride rule), or its numbers.
  enum class Of : uint8_t { kSignatures, kSteps, kNumbers };
  struct Member {
    const char* name;
    Of of;
    std::unique_ptr<Predictor> predictor;  // null: of numbers
    double rate = 0.5;
    uint64_t said = 0;  // signature
  };
  struct Landing {  // where a step leads from the last signature; step 0: what takes its turn
    uint64_t step, symbol;
    Signature signature;
  };

  void judge(uint64_t symbol);
  uint64_t note_step(ArrayView<const int64_t> signature);
  uint64_t foresee(Member& member, uint64_t symbol, uint64_t step);
  uint64_t land(uint64_t step);
  uint64_t take_turn();
  Landing& next_landing();
  uint64_t vote() const;
  const Signature* signature_of(uint64_t symbol);

  std::vector<Member> members_;
  const PeriodicPredictor* periodic_ = nullptr;  // of them, that of whole signatures
  InterleavedStrides interleaved_;
  Signature last_;
  RecentTable<Signature> signatures_, steps_;
  std::vector<Landing> landings_;  // from the last signature, `landing_count_` of them
  size_t landing_count_ = 0;
  uint64_t next_ = 0;
  double confidence_ = 0;
  uint64_t observed_ = 0, foreseen_ = 0, right_ = 0;
};

}  // namespace asc
