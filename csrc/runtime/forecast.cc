#include "runtime/forecast.h"

#include <algorithm>

#include "base/hash.h"

namespace asc {
namespace {

constexpr double kMemory = 0.98;     // what a success or failure counts for one observation later
constexpr double kRecent = 0.9;      // the same, for the confidence in the whole
constexpr double kLeastRate = 1e-3;  // one that fails for long may come back
constexpr double kSureRate = 0.95, kSureWeight = 200;
constexpr size_t kRemembered = 1024;

// Weights are success rates to the fourth power: many poor predictors do not outvote a good one. One that is hardly
// ever wrong decides alone: in a sequence of few signatures, five others may be right in 6 of 7 cases and wrong
// together.
double weight_of(double rate) {
  const double square = rate * rate;
  return square * square + kSureWeight * std::max(0.0, rate - kSureRate);
}

}  // namespace

Forecast::Forecast() : signatures_(kRemembered), steps_(kRemembered) {
  const auto add = [this](const char* name, bool is_of_steps, std::unique_ptr<Predictor> predictor) {
    members_.push_back({name, is_of_steps ? Of::kSteps : Of::kSignatures, std::move(predictor)});
  };
  add("last", false, std::make_unique<LastPredictor>());
  add("stride", true, std::make_unique<LastPredictor>());
  add("usual step", true, std::make_unique<FrequentPredictor>());
  auto periodic = std::make_unique<PeriodicPredictor>();
  periodic_ = periodic.get();
  add("periodic", false, std::move(periodic));
  add("periodic steps", true, std::make_unique<PeriodicPredictor>());
  add("frequency", false, std::make_unique<FrequentPredictor>());
  add("markov 1", false, std::make_unique<MarkovPredictor>(1));
  add("markov 2", false, std::make_unique<MarkovPredictor>(2));
  add("markov 3", false, std::make_unique<MarkovPredictor>(3));
  add("markov 2 of steps", true, std::make_unique<MarkovPredictor>(2));
  members_.push_back({"interleaved strides", Of::kNumbers, nullptr});
}

uint64_t Forecast::symbol_of(ArrayView<const int64_t> numbers) {
  // 0 stands for none.
  return hash_words(reinterpret_cast<const uint64_t*>(numbers.begin()), numbers.size()) | 1;
}

const Forecast::Signature* Forecast::observe(ArrayView<const int64_t> signature) {
  const uint64_t symbol = symbol_of(signature);
  judge(symbol);
  const uint64_t step = note_step(signature);
  last_.assign(signature.begin(), signature.end());
  Signature& kept = signatures_.use(symbol);
  if (kept.empty()) kept = last_;
  landing_count_ = 0;
  interleaved_.observe(signature);
  for (Member& m : members_) m.said = foresee(m, symbol, step);
  next_ = vote();
  return signature_of(next_);
}

void Forecast::judge(uint64_t symbol) {
  const bool was_right = next_ == symbol;
  ++observed_;
  foreseen_ += next_ != 0;
  right_ += was_right;
  if (next_) confidence_ = kRecent * confidence_ + (1 - kRecent) * was_right;
  for (Member& m : members_)
    if (m.said) m.rate = std::max(kLeastRate, kMemory * m.rate + (1 - kMemory) * (m.said == symbol));
}

// What was added in each place since the last signature; 0 at the first one, or where it has another length.
uint64_t Forecast::note_step(ArrayView<const int64_t> signature) {
  if (observed_ < 2 || last_.size() != signature.size()) return 0;
  for (size_t i = 0; i < last_.size(); ++i)
    last_[i] = static_cast<int64_t>(static_cast<uint64_t>(signature[i]) - static_cast<uint64_t>(last_[i]));
  const uint64_t step = symbol_of({last_.data(), last_.size()});
  Signature& kept = steps_.use(step);
  if (kept.empty()) kept = last_;
  return step;
}

// Tells a member what came, and asks it what comes next.
uint64_t Forecast::foresee(Member& m, uint64_t symbol, uint64_t step) {
  if (m.of == Of::kNumbers) return take_turn();
  const bool is_of_steps = m.of == Of::kSteps;
  if (!is_of_steps || step) m.predictor->observe(is_of_steps ? step : symbol);
  const uint64_t next = m.predictor->next();
  return is_of_steps ? land(next) : next;
}

// A place for a signature that need not have been seen; kept once landing_count_ counts it.
Forecast::Landing& Forecast::next_landing() {
  if (landing_count_ == landings_.size()) landings_.emplace_back();
  return landings_[landing_count_];
}

uint64_t Forecast::take_turn() {
  Landing& landing = next_landing();
  if (!interleaved_.next(landing.signature)) return 0;
  landing.step = 0;
  landing.symbol = symbol_of({landing.signature.data(), landing.signature.size()});
  ++landing_count_;
  return landing.symbol;
}

// The signature that a step leads to; 0 for none, and below zero.
uint64_t Forecast::land(uint64_t step) {
  if (!step) return 0;
  for (size_t i = 0; i < landing_count_; ++i)
    if (landings_[i].step == step) return landings_[i].symbol;
  const Signature* const added = steps_.find(step);
  if (!added || added->size() != last_.size()) return 0;
  Landing& landing = next_landing();
  landing.signature.resize(last_.size());
  for (size_t i = 0; i < last_.size(); ++i)
    if (__builtin_add_overflow(last_[i], (*added)[i], &landing.signature[i]) || landing.signature[i] < 0) return 0;
  landing.step = step;
  landing.symbol = symbol_of({landing.signature.data(), landing.signature.size()});
  return landings_[landing_count_++].symbol;
}

uint64_t Forecast::vote() const {
  uint64_t best = 0;
  double most = 0;
  for (const Member& m : members_) {
    if (!m.said || m.said == best) continue;
    double votes = 0;
    for (const Member& other : members_)
      if (other.said == m.said) votes += weight_of(other.rate);
    if (votes > most) {
      most = votes;
      best = m.said;
    }
  }
  return best;
}

const Forecast::Signature* Forecast::signature_of(uint64_t symbol) {
  for (size_t i = 0; i < landing_count_; ++i)
    if (landings_[i].symbol == symbol) return &landings_[i].signature;
  return symbol ? signatures_.find(symbol) : nullptr;
}

std::vector<uint64_t> Forecast::coming() const {
  if (!next_) return {};
  std::vector<uint64_t> period = periodic_->coming();
  if (!period.empty() && period.front() == next_) return period;
  return {next_};
}

std::vector<std::pair<std::string, double>> Forecast::rates() const {
  std::vector<std::pair<std::string, double>> rates;
  for (const Member& m : members_) rates.emplace_back(m.name, m.rate);
  return rates;
}

}  // namespace asc
