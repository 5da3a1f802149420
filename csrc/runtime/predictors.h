// Simple predictors of the next symbol of a sequence; each is right for one kind of sequence. A symbol is the hash of a
// signature, or of the step from one to the next; 0 stands for none.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "runtime/recent_table.h"

namespace asc {

class Predictor {
 public:
  static constexpr uint64_t kWindow = 256;  // symbols that a predictor looks back, a power of two

  virtual ~Predictor() = default;
  // Sees every symbol once, in order.
  virtual void observe(uint64_t symbol) = 0;
  // The one that comes next, by this predictor's rule; 0: no idea.
  virtual uint64_t next() = 0;
};

// What came last comes again.
class LastPredictor final : public Predictor {
 public:
  void observe(uint64_t symbol) override { last_ = symbol; }
  uint64_t next() override { return last_; }

 private:
  uint64_t last_ = 0;
};

// What came one period ago comes again, once a whole period has been kept. The period is the distance to where the last
// eight symbols came before or, where they did not, to the last symbol like the one that broke the period before: a
// symbol may come several times in a period.
class PeriodicPredictor final : public Predictor {
 public:
  void observe(uint64_t symbol) override;
  uint64_t next() override { return period_ && kept_ >= period_ ? seen(period_) : 0; }
  // A period's symbols, the next one first; empty: no idea.
  std::vector<uint64_t> coming() const;

 private:
  uint64_t seen(uint64_t ago) const { return seen_[(count_ - ago) % kWindow]; }

  std::array<uint64_t, kWindow> seen_{};
  static constexpr uint64_t kPhrase = 8;

  void note_phrase(uint64_t symbol);
  uint64_t distance_to(uint64_t where) const;  // 0: too far, or nowhere

  // Where a symbol, and the last symbols together, came last; counted from 1.
  RecentTable<uint64_t> where_{2 * kWindow}, where_phrase_{2 * kWindow};
  uint64_t phrase_ = 0;  // rolling hash of the last symbols
  uint64_t count_ = 0, period_ = 0, kept_ = 0;
};

// What came most often lately comes again.
class FrequentPredictor final : public Predictor {
 public:
  void observe(uint64_t symbol) override;
  uint64_t next() override { return best_; }

 private:
  std::array<uint64_t, kWindow> seen_{};
  RecentTable<uint32_t> counts_{2 * kWindow};
  uint64_t count_ = 0, best_ = 0;
};

// What followed on the last `order` symbols more than once, and more often than all else, follows again.
class MarkovPredictor final : public Predictor {
 public:
  explicit MarkovPredictor(size_t order) : order_(order) {}
  void observe(uint64_t symbol) override;
  uint64_t next() override;

 private:
  struct Followers {  // the rarest makes room
    std::array<uint64_t, 4> symbols{};
    std::array<uint32_t, 4> counts{};
  };
  static constexpr size_t kContexts = 1024;

  const size_t order_;
  std::deque<uint64_t> recent_;
  uint64_t context_ = 0;  // hash of `recent_`; 0: not full yet
  RecentTable<Followers> table_{kContexts};
};

}  // namespace asc
