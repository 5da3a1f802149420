// Validation and stable topological order of a graph and of the bodies inside it.
#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>

#include "graph/graph.h"

namespace asc {
namespace {

// Bodies nest by recursion: a hostile model must not exhaust the stack.
constexpr int kMaxDepth = 64;

enum class Visit : uint8_t { kOpen, kDone };
using Visited = std::unordered_map<const Graph*, Visit>;

// Who defines a value: a node's index, or one of these.
constexpr int kNobody = -1;
constexpr int kInput = -2;
constexpr int kConstant = -3;

class Validator {
 public:
  Validator(Graph& graph, Visited& visited, int depth) : graph_(graph), visited_(visited), depth_(depth) {}

  void run() {
    find_sources();
    find_producers();
    check_uses();
    sort_nodes();
    for (size_t i = 0; i < nodes().size(); ++i) check_bodies(i);
  }

 private:
  const std::vector<Node>& nodes() const { return graph_.nodes(); }

  [[noreturn]] void fail(const std::string& what) const {
    throw GraphError("[graph] " + (graph_.name.empty() ? "" : "'" + graph_.name + "': ") + what);
  }
  std::string node_text(size_t i) const {
    const Node& n = nodes()[i];
    return "node " + (n.name.empty() ? "#" + std::to_string(i) : "'" + n.name + "'") + " (" + n.op + ")";
  }
  std::string value_text(ValueId v) const {
    const std::string& name = graph_.value(v).name;
    return "value " + (name.empty() ? "#" + std::to_string(v) : "'" + name + "'");
  }
  // `user` gives the text of who names the value.
  template <typename User>
  void check_id(ValueId v, const User& user) const {
    if (v < 0 || static_cast<size_t>(v) >= graph_.value_count())
      fail(user() + " has value id " + std::to_string(v) + ", the graph has " + std::to_string(graph_.value_count()) +
           " values; use ids returned by add_value");
  }

  void find_sources() {
    producer_.assign(graph_.value_count(), kNobody);
    for (size_t v = 0; v < graph_.value_count(); ++v)
      if (graph_.value(static_cast<ValueId>(v)).constant) producer_[v] = kConstant;
    for (ValueId v : graph_.inputs()) {
      check_id(v, [] { return std::string("a graph input"); });
      if (producer_[v] == kInput) fail(value_text(v) + " is a graph input twice; list it once");
      if (producer_[v] == kConstant) fail(value_text(v) + " is both a graph input and a constant; keep one of them");
      producer_[v] = kInput;
    }
  }

  void find_producers() {
    for (size_t i = 0; i < nodes().size(); ++i) {
      for (ValueId v : nodes()[i].outputs) {
        if (v == kNoValue) continue;
        check_id(v, [&] { return "an output of " + node_text(i); });
        if (producer_[v] == kInput || producer_[v] == kConstant)
          fail(value_text(v) + " is produced by " + node_text(i) + ", but is also a " +
               (producer_[v] == kInput ? "graph input" : "constant") + "; give the output its own value");
        if (producer_[v] >= 0)
          fail(value_text(v) + " is produced twice, by " + node_text(producer_[v]) + " and by " + node_text(i) +
               "; give each output its own value");
        producer_[v] = static_cast<int>(i);
      }
    }
  }

  void check_uses() const {
    for (size_t i = 0; i < nodes().size(); ++i) {
      for (ValueId v : nodes()[i].inputs) {
        if (v == kNoValue) continue;
        check_id(v, [&] { return "an input of " + node_text(i); });
        if (producer_[v] == kNobody)
          fail(value_text(v) + ", read by " + node_text(i) +
               ", has no producer; make it an input or constant, or add the node that computes it");
      }
    }
    for (ValueId v : graph_.outputs()) {
      check_id(v, [] { return std::string("a graph output"); });
      if (producer_[v] == kNobody)
        fail("graph output " + value_text(v) + " has no producer; add the node that computes it");
    }
  }

  // A graph that was sorted before, as saved ones are, stays as it is.
  bool is_sorted() const {
    for (size_t i = 0; i < nodes().size(); ++i)
      for (ValueId v : nodes()[i].inputs)
        if (v != kNoValue && producer_[v] >= static_cast<int>(i)) return false;
    return true;
  }

  // Kahn's algorithm; of the ready nodes the first in the original order goes next, so a sorted graph stays as it is.
  void sort_nodes() {
    if (is_sorted()) return;
    const size_t count = nodes().size();
    std::vector<std::vector<int>> readers(count);
    std::vector<int> waits(count, 0);
    for (size_t i = 0; i < count; ++i) {
      for (ValueId v : nodes()[i].inputs) {
        if (v == kNoValue || producer_[v] < 0) continue;
        readers[producer_[v]].push_back(static_cast<int>(i));
        ++waits[i];
      }
    }
    std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
    for (size_t i = 0; i < count; ++i)
      if (waits[i] == 0) ready.push(static_cast<int>(i));
    std::vector<int> order;
    order.reserve(count);
    while (!ready.empty()) {
      const int i = ready.top();
      ready.pop();
      order.push_back(i);
      for (int reader : readers[i])
        if (--waits[reader] == 0) ready.push(reader);
    }
    if (order.size() < count) fail_cycle(waits);
    apply_order(order);
  }

  void apply_order(const std::vector<int>& order) {
    if (!graph_.own_nodes.empty()) fail("its nodes are out of order, but others stand for them; save the graph again");
    std::vector<Node> sorted;
    sorted.reserve(order.size());
    for (int i : order) sorted.push_back(std::move(graph_.nodes()[i]));
    graph_.nodes() = std::move(sorted);
  }

  // A node that still waits reads from another one that waits: walking upstream must run into a cycle.
  [[noreturn]] void fail_cycle(const std::vector<int>& waits) const {
    std::vector<int> path, seen(waits.size(), -1);
    int at = 0;
    while (waits[at] == 0) ++at;
    while (seen[at] < 0) {
      seen[at] = static_cast<int>(path.size());
      path.push_back(at);
      at = waiting_producer(at, waits);
    }
    path.erase(path.begin(), path.begin() + seen[at]);
    std::reverse(path.begin(), path.end());
    constexpr size_t kMaxNamed = 10;
    std::string text;
    for (size_t i = 0; i < std::min(path.size(), kMaxNamed); ++i) text += node_text(path[i]) + " -> ";
    if (path.size() > kMaxNamed) text += "... -> ";
    fail("cycle through " + std::to_string(path.size()) + " node(s): " + text + node_text(path[0]) +
         "; break it, or use a Loop");
  }

  int waiting_producer(int node, const std::vector<int>& waits) const {
    for (ValueId v : nodes()[node].inputs)
      if (v != kNoValue && producer_[v] >= 0 && waits[producer_[v]] > 0) return producer_[v];
    return node;
  }

  void check_bodies(size_t i) {
    for (const Attribute& a : nodes()[i].attributes.all()) {
      const auto* body = std::get_if<std::shared_ptr<Graph>>(&a.data);
      if (!body) continue;
      const std::string where = "body '" + a.name + "' of " + node_text(i);
      if (!*body) fail(where + " is empty; give it a graph");
      const auto [entry, is_new] = visited_.try_emplace(body->get(), Visit::kOpen);
      if (!is_new && entry->second == Visit::kOpen) fail(where + " contains itself; use a Loop");
      if (!is_new) continue;
      if (depth_ == kMaxDepth) fail(where + " is nested deeper than " + std::to_string(kMaxDepth) + "; flatten it");
      Validator(**body, visited_, depth_ + 1).run();
      visited_[body->get()] = Visit::kDone;
    }
  }

  Graph& graph_;
  Visited& visited_;
  int depth_;
  std::vector<int> producer_;
};

}  // namespace

void Graph::validate_and_sort() {
  Visited visited{{this, Visit::kOpen}};
  Validator(*this, visited, 0).run();
}

}  // namespace asc
