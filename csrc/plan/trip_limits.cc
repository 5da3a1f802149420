// While loops of exporters count in a carried value, and go on while it is less than a limit from outside. The number
// of iterations is then known before the first: nothing about them is asked on the host, and all are alike.
#include <algorithm>

#include "plan/loop_body.h"

namespace asc {
namespace {

constexpr int64_t kOnnxInt64 = 7;
constexpr int kDepth = 3;                   // of conditions that must all hold
constexpr int64_t kFar = int64_t{1} << 61;  // differences of such numbers are no larger than int64

class Finder {
 public:
  explicit Finder(LevelBuilder& b) : b_(b), body_(b) {}

  void run() {
    const ValueId condition = b_.outputs[0];
    std::vector<TripLimit> limits;
    if (!is_only_result(condition) || !collect(condition, kDepth, limits) || limits.empty()) return;
    const PlanNode* node = body_.producer(condition);
    b_.nodes.erase(b_.nodes.begin() + (node - b_.nodes.data()));
    b_.values[condition].constant =
        std::make_shared<const HostTensor>(HostTensor::from(DType::kBool, Shape{}, std::vector<uint8_t>{1}));
    b_.static_shapes[condition] = Shape{};
    b_.loop->limits = std::move(limits);
  }

 private:
  bool is_only_result(ValueId v) const {
    return body_.producer(v) && body_.uses().users(v).empty() &&
           std::count(b_.outputs.begin(), b_.outputs.end(), v) == 1;
  }

  // Adds the limits that the value stands for, and says whether it is nothing else.
  bool collect(ValueId v, int depth, std::vector<TripLimit>& limits) const {
    v = body_.origin(v);
    if (body_.is_condition(v)) return true;  // or the body would not run
    const PlanNode* p = body_.producer(v);
    if (!p || p->node.inputs.size() != 2) return false;
    const ValueId first = p->node.inputs[0], second = p->node.inputs[1];
    if (p->node.op == "Less" || p->node.op == "LessOrEqual") return add(first, second, p->node.op != "Less", limits);
    if (p->node.op == "Greater" || p->node.op == "GreaterOrEqual")
      return add(second, first, p->node.op != "Greater", limits);
    return p->node.op == "And" && depth > 0 && collect(first, depth - 1, limits) && collect(second, depth - 1, limits);
  }

  // A counter in integers, also where they are compared as other numbers.
  bool add(ValueId counter, ValueId limit, bool is_inclusive, std::vector<TripLimit>& limits) const {
    counter = uncast(counter);
    limit = uncast(limit);
    if (!is_integer(counter) || !is_integer(limit) || !body_.is_fixed(limit)) return false;
    const ValueId before = body_.next_of(counter);
    const ValueId carried = before == kNoValue ? counter : before;
    if (!body_.is_carried(carried) || body_.carried(carried).step != 1) return false;
    const int64_t more = (before == kNoValue ? 1 : 0) + (is_inclusive ? 1 : 0);
    limits.push_back({body_.position(carried), body_.outer(limit), more});
    return true;
  }

  ValueId uncast(ValueId v) const {
    const PlanNode* p = body_.producer(v);
    while (p && p->node.op == "Cast" && keeps_integers(p->output_types[0])) {
      v = p->node.inputs[0];
      p = body_.producer(v);
    }
    return v;
  }
  static bool keeps_integers(DType t) { return t == DType::kFloat32 || t == DType::kFloat64 || t == DType::kInt64; }
  bool is_integer(ValueId v) const {
    const DType t = b_.values[v].type.dtype;
    return t == DType::kInt32 || t == DType::kInt64;
  }

  LevelBuilder& b_;
  const LoopBody body_;
};

// Adds what counts the trips of a Loop.
class Outside {
 public:
  Outside(LevelBuilder& b, const Node& loop) : b_(b), loop_(loop) {}

  ValueId trips(const TripLimit& t) {
    const ValueId limit = number(t.limit.input >= 0 ? loop_.inputs[static_cast<size_t>(t.limit.input)]
                                                    : add_constant(b_, name("limit"), *t.limit.constant));
    const ValueId start = number(loop_.inputs[static_cast<size_t>(t.start)]);
    const ValueId left = node("Add", {node("Sub", {limit, start}), scalar(t.more)});
    return node("Max", {left, scalar(1)});
  }
  ValueId least(ValueId a, ValueId b) { return a == kNoValue ? b : node("Min", {a, b}); }

 private:
  ValueId number(ValueId v) {
    Attributes to;
    to.set("to", kOnnxInt64);
    return node("Clip", {node("Cast", {v}, std::move(to)), scalar(-kFar), scalar(kFar)});
  }
  ValueId scalar(int64_t number) {
    return add_constant(b_, name("number"), HostTensor::from(DType::kInt64, Shape{}, std::vector<int64_t>{number}));
  }
  std::string name(const std::string& what) { return loop_.name + "/trips_" + what + "_" + std::to_string(count_++); }

  ValueId node(const char* op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    Node n;
    n.op = op;
    n.name = name(op);
    n.inputs = std::move(inputs);
    const ValueId result = add_value(b_, n.name, DType::kInt64, kNoValue);
    n.outputs = {result};
    n.attributes = std::move(attributes);
    add_node(b_, std::move(n));
    return result;
  }

  LevelBuilder& b_;
  const Node& loop_;
  int count_ = 0;
};

}  // namespace

void find_trip_limits(LevelBuilder& body) {
  if (!body.loop || !body.options->hoist || body.outputs.empty()) return;
  Finder(body).run();
  prune(body);
}

void add_trip_limits(LevelBuilder& b, PlanNode& loop, const LoopSteps& steps) {
  if (steps.limits.empty()) return;
  Outside outside(b, loop.node);
  ValueId trips = loop.node.inputs[0];
  for (const TripLimit& t : steps.limits) trips = outside.least(trips, outside.trips(t));
  loop.node.inputs[0] = trips;
  loop.input_types[0] = DType::kInt64;
}

}  // namespace asc
