// Gelu, as exporters spell it: products of x, 1/2 and 1 + tanh(v) or 1 + erf(v) in any order, where v is a polynomial
// of x in whichever form.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "plan/byte_values.h"
#include "plan/uses.h"

namespace asc {
namespace {

class Finder {
 public:
  explicit Finder(LevelBuilder& b) : b_(b), uses_(b) {}

  void run() {
    for (PlanNode& p : b_.nodes)
      if ((p.node.op == "Mul" || p.node.op == "Div") && uses_.is_plain(p)) try_product(p);
  }

 private:
  static constexpr int kMostFactors = 4, kMostDepth = 8;
  // Coefficients, of x^0 first.
  using Polynomial = std::array<double, 4>;

  // Without dimensions, which the result would have too.
  std::optional<float> number(ValueId v) const {
    const HostTensor* c = constant_of(b_, v);
    if (!c || c->dtype != DType::kFloat32 || c->shape.rank() != 0) return std::nullopt;
    return *c->as<float>();
  }
  // What makes v, as a node of float32; null: something else does.
  const Node* maker(ValueId v) const {
    const int p = v == kNoValue ? -1 : uses_.producer(v);
    if (p < 0 || !uses_.is_plain(b_.nodes[static_cast<size_t>(p)])) return nullptr;
    return &b_.nodes[static_cast<size_t>(p)].node;
  }
  static bool is_near(double a, double b) { return std::fabs(a - b) <= 1e-5 * std::fabs(b); }

  struct Factors {
    double constant = 1;
    ValueId values[kMostFactors];
    int count = 0;
  };
  // Of the product v; false: more than kMostFactors.
  bool add_factors(ValueId v, Factors& f, int depth = 0) const {
    if (const auto c = number(v)) {
      f.constant *= *c;
      return true;
    }
    const Node* n = depth < kMostFactors ? maker(v) : nullptr;
    if (n && n->op == "Mul") return add_factors(n->inputs[0], f, depth + 1) && add_factors(n->inputs[1], f, depth + 1);
    const auto divisor = n && n->op == "Div" ? number(n->inputs[1]) : std::nullopt;
    if (divisor) {
      f.constant /= *divisor;
      return add_factors(n->inputs[0], f, depth + 1);
    }
    if (f.count == kMostFactors) return false;
    f.values[f.count++] = v;
    return true;
  }

  // v as a polynomial of x; absent where it is none, or of a higher degree.
  std::optional<Polynomial> polynomial(ValueId v, ValueId x, int depth = 0) const {
    if (v == x) return Polynomial{0, 1, 0, 0};
    if (const auto c = number(v)) return Polynomial{*c, 0, 0, 0};
    const Node* n = depth < kMostDepth ? maker(v) : nullptr;
    if (!n || n->inputs.size() != 2) return std::nullopt;
    const auto a = polynomial(n->inputs[0], x, depth + 1), b = a ? polynomial(n->inputs[1], x, depth + 1) : a;
    if (!b) return std::nullopt;
    const bool is_constant = (*b)[1] == 0 && (*b)[2] == 0 && (*b)[3] == 0;
    Polynomial r = *a;
    if (n->op == "Add" || n->op == "Sub") {
      for (size_t i = 0; i < r.size(); ++i) r[i] += n->op == "Add" ? (*b)[i] : -(*b)[i];
      return r;
    }
    if (n->op == "Mul") return product(*a, *b);
    if (n->op == "Div" && is_constant) return product(*a, {1 / (*b)[0], 0, 0, 0});
    if (n->op == "Pow" && is_constant && ((*b)[0] == 2 || (*b)[0] == 3)) {
      std::optional<Polynomial> power = a;
      for (int i = 1; i < (*b)[0] && power; ++i) power = product(*power, *a);
      return power;
    }
    return std::nullopt;
  }
  static std::optional<Polynomial> product(const Polynomial& a, const Polynomial& b) {
    Polynomial r = {};
    for (size_t i = 0; i < a.size(); ++i)
      for (size_t j = 0; j < b.size(); ++j) {
        if (a[i] == 0 || b[j] == 0) continue;
        if (i + j >= r.size()) return std::nullopt;
        r[i + j] += a[i] * b[j];
      }
    return r;
  }

  void try_product(PlanNode& p) {
    Factors f;
    if (!add_factors(p.node.outputs[0], f) || f.count != 2 || f.constant != 0.5) return;
    for (size_t i : {0, 1})
      if (const char* form = form_of(f.values[1 - i], f.values[i])) {
        become(b_, p, "Gelu", f.values[i]);
        p.node.attributes.set("approximate", std::string(form));
        return;
      }
  }

  // Of Gelu, where v is its factor of 1/2 x; null: it is none.
  const char* form_of(ValueId v, ValueId x) const {
    const Node* sum = maker(v);
    if (!sum || sum->op != "Add") return nullptr;
    for (size_t i : {0, 1}) {
      const Node* n = number(sum->inputs[i]) == 1.0f ? maker(sum->inputs[1 - i]) : nullptr;
      if (!n || (n->op != "Tanh" && n->op != "Erf")) continue;
      const auto inner = polynomial(n->inputs[0], x);
      if (!inner || (*inner)[0] != 0 || (*inner)[2] != 0) continue;
      const double linear = (*inner)[1], cubic = (*inner)[3];
      if (n->op == "Erf" && is_near(linear, M_SQRT1_2) && cubic == 0) return "none";
      const double root = std::sqrt(2 / M_PI);
      if (n->op == "Tanh" && is_near(linear, root) && is_near(cubic, 0.044715 * root)) return "tanh";
    }
    return nullptr;
  }

  LevelBuilder& b_;
  const Uses uses_;  // of the nodes as they were: what became one still makes the same value
};

}  // namespace

void find_gelus(LevelBuilder& b) {
  const auto is_inner = [](const PlanNode& p) { return p.node.op == "Tanh" || p.node.op == "Erf"; };
  if (b.options->fuse && std::any_of(b.nodes.begin(), b.nodes.end(), is_inner)) Finder(b).run();
}

}  // namespace asc
