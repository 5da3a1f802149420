#include "runtime/sink_choice.h"

namespace asc {
namespace {

// Running averages. What others delayed counts little, and is forgotten.
void average(uint64_t& of, uint64_t ns) { of = of ? (3 * of + std::min(ns, 2 * of)) / 4 : ns; }

}  // namespace

bool SinkChoice::is_due_before(const Key& key) {
  const std::shared_ptr<Sighting> seen = sightings_.find(key);
  was_first_ = !seen;
  if (seen) {
    note_seen(*seen);
    if (seen->made || seen->first_ns < price_ns_) return false;
    seen->made = 1;
    return true;
  }
  // Laplace's rule, with the hope that shapes come back: what it costs to be wrong is bounded.
  const double chance = (returned_ + 2) / (sighted_ + 3);
  const double price = static_cast<double>(make_ns_), gain = resolve_gain_ns();
  if (!price_ns_ || chance * gain < (1 - chance) * price) return false;
  if (vain_ns_ + price > kMostInVain * total_ns_) return false;
  note_new(key)->made = 1;
  return true;
}

bool SinkChoice::is_due_after(const Key& key, uint64_t host_ns) {
  const std::shared_ptr<Sighting> seen = sightings_.find(key);
  was_first_ = !seen;
  total_ns_ += static_cast<double>(host_ns);
  if (!seen) {
    note_new(key)->first_ns = host_ns;
    return false;
  }
  seen->repeat_ns += host_ns;
  const double price = static_cast<double>(price_ns_) * static_cast<double>(uint64_t{1} << (2 * seen->made));
  if (static_cast<double>(seen->repeat_ns) < price) return false;
  seen->repeat_ns = 0;
  seen->made = static_cast<uint8_t>(std::min<int>(seen->made + 1, kMaxMade));
  return true;
}

bool SinkChoice::learns_price(const Key& key) {
  if (price_ns_ || sighted_ != 1) return false;
  if (const std::shared_ptr<Sighting> seen = sightings_.find(key)) seen->made = 1;
  is_learning_ = true;
  return true;
}

double SinkChoice::resolve_gain_ns() const {
  return resolve_ns_ ? static_cast<double>(resolve_ns_) : kUsualResolve * static_cast<double>(make_ns_);
}

void SinkChoice::note_price(uint64_t resolve_ns, uint64_t make_ns) {
  if (is_learning_ && price_ns_) {  // that of the first was of a process that is cold
    price_ns_ = make_ns_ = 0;
    is_learning_ = false;
  }
  average(price_ns_, resolve_ns + make_ns);
  average(make_ns_, make_ns);
  if (is_learning_ || !was_first_) return;  // else it had been resolved just before
  average(resolve_ns_, resolve_ns);
  vain_ns_ += static_cast<double>(make_ns_);
}

void SinkChoice::note_return() {
  returned_ += 1;
  vain_ns_ = std::max(0.0, vain_ns_ - static_cast<double>(make_ns_) - resolve_gain_ns());
}

std::shared_ptr<SinkChoice::Sighting> SinkChoice::note_new(const Key& key) {
  std::shared_ptr<Sighting> sighting = std::make_shared<Sighting>();
  sightings_.insert(key, sighting, sizeof(Sighting));
  price_ns_ -= price_ns_ / 64;
  if (++sighted_ > kWindow) {
    sighted_ /= 2;
    returned_ /= 2;
  }
  return sighting;
}

void SinkChoice::note_seen(Sighting& seen) {
  if (!seen.has_returned) ++returned_;
  seen.has_returned = true;
}

}  // namespace asc
