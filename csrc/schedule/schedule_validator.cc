#include "schedule/schedule_validator.h"

#include <unordered_map>

namespace asc {
namespace {

using Kind = StreamOrder::Step::Kind;

// What happens before what: a closure over the steps.
class Reach {
 public:
  explicit Reach(const Schedule& schedule) : words_((schedule.tasks.size() + 63) / 64), sets_(schedule.tasks.size()) {
    const StreamOrder& order = schedule.streams.order;
    std::vector<Set> streams(order.streams, Set(words_)), points(order.points, Set(words_));
    if (order.is_single())
      for (uint32_t i = 0; i < sets_.size(); ++i) visit(i, streams[0]);
    for (const StreamOrder::Step& step : order.steps) {
      Set& now = streams[step.stream];
      if (step.kind == Kind::kTask)
        visit(step.index, now);
      else if (step.kind == Kind::kRecord)
        points[step.index] = now;
      else
        for (size_t w = 0; w < words_; ++w) now[w] |= points[step.index][w];
    }
    end_ = streams[0];
  }

  bool is_before(uint32_t a, uint32_t b) const { return has(sets_[b], a); }
  bool is_before_end(uint32_t a) const { return has(end_, a); }

 private:
  using Set = std::vector<uint64_t>;
  static bool has(const Set& set, uint32_t i) { return !set.empty() && (set[i / 64] >> (i % 64) & 1); }
  void visit(uint32_t task, Set& now) {
    sets_[task] = now;
    now[task / 64] |= uint64_t{1} << (task % 64);
  }

  size_t words_;
  std::vector<Set> sets_;  // by task: what has ended when it begins
  Set end_;
};

struct Write {
  uint32_t task, slot;
  size_t begin, end;  // in the arena; equal: outside
};

class Finder {
 public:
  explicit Finder(const Schedule& schedule) : schedule_(schedule), reach_(schedule) {
    for (const Schedule::ArenaSlot& a : schedule.arena_slots) place_[a.slot] = {a.offset, a.offset + a.bytes};
    for (uint32_t t = 0; t < schedule.tasks.size(); ++t) {
      const Task& task = schedule.tasks[t];
      const uint32_t inputs = task.input_count, outputs = task.output_count;
      for (uint32_t i = 0; i < inputs; ++i) readers_[task.operands[i]].push_back(t);
      for (uint32_t i = inputs; i <= inputs + outputs; ++i)
        add_write(t, task.operands[i]);  // the workspace is the last
    }
  }

  std::string find() const {
    for (const Write& w : writes_) {
      if (!reach_.is_before_end(w.task)) return name(w.task) + " may run on when the first stream has ended";
      if (std::string fault = disturbed(w, w.task); !fault.empty()) return fault;
      const auto readers = readers_.find(w.slot);
      if (readers == readers_.end()) continue;
      for (uint32_t r : readers->second) {
        if (!reach_.is_before(w.task, r)) return name(r) + " may read slot " + number(w.slot) + " before it is written";
        if (std::string fault = disturbed(w, r); !fault.empty()) return fault;
      }
    }
    return "";
  }

 private:
  static std::string number(uint32_t n) { return std::to_string(n); }
  std::string name(uint32_t task) const { return "task " + number(task); }

  void add_write(uint32_t task, uint32_t slot) {
    if (slot == 0) return;
    const auto place = place_.find(slot);
    writes_.push_back({task, slot, place == place_.end() ? 0 : place->second.first,
                       place == place_.end() ? 0 : place->second.second});
  }

  // By another write to the same memory, from the write of `own` until `reader` has read it.
  std::string disturbed(const Write& own, uint32_t reader) const {
    for (const Write& other : writes_) {
      if (other.slot == own.slot || other.begin >= own.end || own.begin >= other.end) continue;
      const bool is_over = other.task != own.task && reach_.is_before(other.task, own.task);
      const bool is_later = reach_.is_before(reader, other.task);
      const bool is_in_place = other.task == reader && other.task != own.task && other.begin == own.begin;
      if (!is_over && !is_later && !is_in_place)
        return name(other.task) + " may write slot " + number(other.slot) + " over slot " + number(own.slot) +
               " of task " + number(own.task) + " before task " + number(reader) + " has used it";
    }
    return "";
  }

  const Schedule& schedule_;
  Reach reach_;
  std::unordered_map<uint32_t, std::pair<size_t, size_t>> place_;  // by slot, in the arena
  std::unordered_map<uint32_t, std::vector<uint32_t>> readers_;
  std::vector<Write> writes_;
};

}  // namespace

std::string find_race(const Schedule& schedule) { return Finder(schedule).find(); }

}  // namespace asc
