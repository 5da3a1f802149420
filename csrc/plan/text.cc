// Byte-stable text of a plan: the same graph and options give the same bytes.
#include "plan/plan.h"

namespace asc {
namespace {

std::string names(const Plan& plan, const std::vector<ValueId>& values) {
  std::string out;
  for (ValueId v : values) {
    if (!out.empty()) out += ", ";
    if (v == kNoValue) {
      out += "-";
      continue;
    }
    const PlanValue& value = plan.values[v];
    out += value.name + ":" + value.type.text();
    if (value.constant) out += " const";
    if (value.is_host && !value.constant) out += value.is_read_back ? " read_back" : " host";
    if (value.root != v) out += " =" + plan.values[value.root].name;
  }
  return out;
}

const char* label(const PlanNode& n) {
  if (n.op->kind == OpKind::kControl) return "control";
  if (n.is_on_host) return "host";
  if (n.is_unread) return "shape";
  if (n.is_view()) return "view";
  return n.is_copy ? "copy" : "task";
}

std::string parts(const PlanNode& n) {
  std::string out;
  for (const Node& part : n.parts) out += (out.empty() ? "{" : ", ") + part.op + part.attributes.text();
  return out + "}";
}

void print_level(const Plan& plan, const std::string& indent, std::string& out) {
  out += indent + "plan " + plan.name + "\n";
  out += indent + "inputs " + names(plan, plan.inputs) + "\n";
  out += indent + "outputs " + names(plan, plan.outputs) + "\n";
  for (const std::string& reason : plan.dynamic_reasons) out += indent + "dynamic: " + reason + "\n";
  for (size_t s = 0; s < plan.segments.size(); ++s) {
    const Segment& segment = plan.segments[s];
    out += indent + "segment " + std::to_string(s) + " reads " + names(plan, segment.inputs) + "\n";
    for (const PlanNode& n : segment.nodes) {
      out += indent + "  " + std::to_string(n.number) + " " + label(n) + " " + n.node.op + " '" + n.node.name + "'" +
             (n.parts.empty() ? n.node.attributes.text() : parts(n)) + " (" + names(plan, n.node.inputs) + ") -> " +
             names(plan, n.node.outputs) + "\n";
    }
    for (const auto& body : segment.bodies) print_level(*body, indent + "    ", out);
    for (uint32_t n : segment.extent_nodes) out += indent + "  sync extent of " + segment.nodes[n].node.name + "\n";
    for (ValueId v : segment.read_backs) out += indent + "  sync data of " + plan.values[v].name + "\n";
  }
}

}  // namespace

std::string Plan::text() const {
  std::string out;
  print_level(*this, "", out);
  return out;
}

}  // namespace asc
