#include "runtime/foresight.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <thread>

#include "profile/clock.h"

namespace asc {
namespace {

constexpr double kSmoothing = 0.8;  // of the averages of pauses and costs
constexpr double kForgetting =
    0.99;  // of a cost that forbids resolving, so that one slow case does not end it for good

// Between two looks for work, in shares of a pause, and bounds; looks before the thread has to be woken again.
constexpr double kLooksPerPause = 8, kLeastLookNs = 5e4, kMostLookNs = 5e5;
constexpr int kLooks = 40;

constexpr size_t kDecisions = 64;  // kept for whoever asks

double ns_between(uint64_t from_ticks, uint64_t to_ticks) {
  return static_cast<double>(to_ticks - from_ticks) * ns_per_tick();
}

}  // namespace

Foresight::Foresight(const Plan& plan, const ForesightPolicy& policy, Resolve resolve)
    : policy_(policy), resolve_(std::move(resolve)), dims_(plan) {}

Foresight::~Foresight() {
  is_stopping_ = true;
  work_.wake();
  thread_.join();
}

Sighting Foresight::begin_run(const std::vector<TensorView>& inputs, uint64_t arrived) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!start_ticks_) start_ticks_ = arrived;
  if (end_ticks_ && arrived > end_ticks_)
    pause_ns_ = kSmoothing * pause_ns_ + (1 - kSmoothing) * ns_between(end_ticks_, arrived);
  if (!is_possible_) return {};
  if (!dims_.read(inputs, numbers_)) forecast_ = Forecast();
  running_ = Forecast::symbol_of(numbers_);
  const bool is_new = !forecast_.has_seen(running_);
  settle(running_);
  if (asked_symbol_ == running_) asked_symbol_ = 0;  // it has come already
  const Forecast::Signature* const foreseen = forecast_.observe(numbers_);
  is_foreseen_ = foreseen != nullptr;
  if (foreseen) foreseen_ = *foreseen;
  return {running_, is_new ? Novelty::kNew : Novelty::kSeen};
}

void Foresight::end_run(bool had_schedule) {
  const std::lock_guard<std::mutex> lock(mutex_);
  end_ticks_ = now_ticks();
  if (!is_possible_) return;
  if (bool* const known = had_schedule ? nullptr : known_.find(running_)) *known = false;
  if (is_foreseen_ && may_resolve(forecast_.next())) ask_for(foreseen_);
}

// --- what caches ask ----------------------------------------------------------------------------------------------

std::vector<uint64_t> Foresight::coming() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!is_possible_ || forecast_.confidence() < policy_.min_confidence) return {};
  return forecast_.coming();
}

void Foresight::note_gone(uint64_t tag) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (bool* const known = known_.find(tag)) *known = false;
}

void Foresight::note_decision(Decision decision) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (decisions_.size() == kDecisions) decisions_.pop_front();
  decisions_.push_back(std::move(decision));
}

std::vector<Outlook::Decision> Foresight::take_decisions() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<Decision> taken(std::make_move_iterator(decisions_.begin()), std::make_move_iterator(decisions_.end()));
  decisions_.clear();
  return taken;
}

void Foresight::try_again() {
  const std::lock_guard<std::mutex> lock(mutex_);
  is_possible_ = true;
}

// Counts what was resolved ahead as used, or as wasted where it has waited for too long.
void Foresight::settle(uint64_t symbol) {
  if (outstanding_.empty()) return;
  counts_.used += outstanding_.erase(symbol);
  for (auto it = outstanding_.begin(); it != outstanding_.end();) {
    if (forecast_.observed() - it->second.made_at < policy_.patience) {
      ++it;
      continue;
    }
    ++counts_.wasted;
    counts_.wasted_ns += it->second.spent_ns;
    it = outstanding_.erase(it);
  }
}

bool Foresight::may_resolve(uint64_t foreseen) {
  if (known_.find(foreseen) && known_.use(foreseen)) return false;
  if (forecast_.confidence() < policy_.min_confidence || outstanding_.size() >= policy_.max_outstanding) {
    ++counts_.unsure;
    return false;
  }
  const double budget_ns = policy_.free_ns + policy_.cpu_share * ns_between(start_ticks_, end_ticks_);
  if (static_cast<double>(counts_.spent_ns) > budget_ns || pause_ns_ < policy_.min_pause * cost_ns_) {
    ++counts_.no_pause;
    cost_ns_ *= kForgetting;
    return false;
  }
  return true;
}

// What was asked for before and has not begun is not worth it any more.
void Foresight::ask_for(const Forecast::Signature& foreseen) {
  asked_symbol_ = forecast_.next();
  asked_shapes_ = dims_.shapes(foreseen);
  try {
    if (!thread_.is_started()) thread_.start("asc-ahead", [this] { serve(); });
  } catch (const DeviceError&) {  // no thread to be had: runs go on without
    is_possible_ = false;
    return;
  }
  ++asked_;
  work_.wake();
}

void Foresight::serve() {
  // Else waking this thread at the end of a run would put off the caller until something is resolved.
  Thread::yield_to_others();
  const auto has_work = [this] { return is_stopping_ || asked_ != served_; };
  double pause_ns = 0;
  for (;;) {
    // Waking a thread takes the caller a system call, and its CPU where that is what the thread is given to run on.
    const double look_ns = std::clamp(pause_ns / kLooksPerPause, kLeastLookNs, kMostLookNs);
    for (int look = 0; look < kLooks && !has_work(); ++look)
      std::this_thread::sleep_for(std::chrono::nanoseconds(static_cast<int64_t>(look_ns)));
    work_.wait(has_work);
    if (is_stopping_) return;
    uint64_t asked = 0, symbol = 0;
    std::vector<Shape> shapes;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      asked = asked_;
      symbol = asked_symbol_;
      shapes.swap(asked_shapes_);
      asked_symbol_ = 0;
      pause_ns = pause_ns_;
    }
    if (symbol) resolve_one(symbol, shapes);
    served_ = asked;
    done_.wake();
  }
}

void Foresight::resolve_one(uint64_t symbol, const std::vector<Shape>& shapes) {
  uint64_t spent_ns = 0;
  std::optional<bool> made = false;
  bool has_failed = false;
  try {
    made = resolve_(shapes, symbol, spent_ns);
  } catch (...) {  // the model refuses these shapes: should they come, their run complains
    has_failed = true;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  is_possible_ = made.has_value();
  counts_.failed += has_failed;
  counts_.spent_ns += spent_ns;
  known_.use(symbol) = true;
  if (!made || !*made) return;
  const auto cost = static_cast<double>(spent_ns);
  cost_ns_ = cost_ns_ > 0 ? kSmoothing * cost_ns_ + (1 - kSmoothing) * cost : cost;
  outstanding_[symbol] = {forecast_.observed(), spent_ns};
  ++counts_.resolved;
}

bool Foresight::wait_idle(int64_t timeout_ns) {
  return done_.wait([this] { return asked_ == served_; }, timeout_ns);
}

std::vector<std::pair<std::string, double>> Foresight::stats() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto d = [](uint64_t v) { return static_cast<double>(v); };
  return {{"predict_runs", d(forecast_.observed())},
          {"predict_foreseen", d(forecast_.foreseen())},
          {"predict_right", d(forecast_.right())},
          {"ahead_resolved", d(counts_.resolved)},
          {"ahead_used", d(counts_.used)},
          {"ahead_wasted", d(counts_.wasted)},
          {"ahead_failed", d(counts_.failed)},
          {"ahead_unsure", d(counts_.unsure)},
          {"ahead_no_slack", d(counts_.no_pause)},
          {"ahead_ns", d(counts_.spent_ns)},
          {"ahead_wasted_ns", d(counts_.wasted_ns)},
          {"ahead_slack_ns", pause_ns_},
          {"ahead_cost_ns", cost_ns_}};
}

std::string Foresight::explain() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!is_possible_)
    return "prediction is off: nothing can be resolved ahead where contents of inputs, sync points or control flow "
           "decide on the schedule, or where the schedule cache is off\n";
  std::vector<std::pair<std::string, double>> rates = forecast_.rates();
  std::stable_sort(rates.begin(), rates.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string best;
  for (size_t i = 0; i < 3; ++i)
    best += (i ? ", " : "") + rates[i].first + " " + std::to_string(static_cast<int>(100 * rates[i].second)) + " %";
  char text[400];
  std::snprintf(text, sizeof(text),
                "prediction: %llu of %llu signatures right, %llu foreseen (%s); %llu resolved ahead in %.1f ms, %llu "
                "used, %llu wasted; not tried: %llu without slack, %llu unsure\n",
                static_cast<unsigned long long>(forecast_.right()),
                static_cast<unsigned long long>(forecast_.observed()),
                static_cast<unsigned long long>(forecast_.foreseen()), best.c_str(),
                static_cast<unsigned long long>(counts_.resolved), static_cast<double>(counts_.spent_ns) * 1e-6,
                static_cast<unsigned long long>(counts_.used), static_cast<unsigned long long>(counts_.wasted),
                static_cast<unsigned long long>(counts_.no_pause), static_cast<unsigned long long>(counts_.unsure));
  return text;
}

}  // namespace asc
