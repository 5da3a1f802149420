#include "plan/last_order.h"

#include <algorithm>

#include "plan/byte_values.h"

namespace asc {
namespace {

std::vector<int64_t> to_last(int rank) {
  std::vector<int64_t> perm = {0};
  for (int i = 2; i < rank; ++i) perm.push_back(i);
  perm.push_back(1);
  return perm;
}

std::vector<int64_t> to_first(int rank) {
  std::vector<int64_t> perm = {0, rank - 1};
  for (int i = 1; i + 1 < rank; ++i) perm.push_back(i);
  return perm;
}

}  // namespace

bool passes_order_on(const std::string& op) {
  return is_element_wise(op) || is_conversion(op) || op == "Concat" || op == "Split" || op == "Identity";
}

bool turns_to_first(const Node& transpose) {
  const std::vector<int64_t>& perm = transpose.attributes.get_ints("perm");
  return perm.size() >= 3 && perm == to_first(static_cast<int>(perm.size()));
}

void LastOrder::emit(PlanNode p) {
  last_rank_.resize(b_.values.size(), 0);
  const std::string& op = p.node.op;
  const bool passes_on = passes_order_on(op);
  for (ValueId v : p.node.inputs)
    if (passes_on && v != kNoValue && last_rank_[v])
      for (ValueId out : p.node.outputs)
        if (out != kNoValue) last_rank_[out] = std::max(last_rank_[out], last_rank_[v]);
  // From values with channels last, whoever made them. Of signals, the same turn leads back.
  if (op == "Transpose" && turns_to_first(p.node) && !last_rank_[p.node.inputs[0]])
    last_rank_[p.node.outputs[0]] = static_cast<int>(p.node.attributes.get_ints("perm").size());
  b_.nodes.push_back(std::move(p));
}

void LastOrder::emit_between(int rank, PlanNode p, ValueId x) {
  const ValueId out = p.node.outputs[0];
  ValueId& last_x = last_of_.try_emplace(x, kNoValue).first->second;
  const bool is_new = last_x == kNoValue;
  if (is_new) last_x = add_value(b_, b_.values[x].name + "_last", b_.values[x].type.dtype, kNoValue);
  const ValueId last_y = add_value(b_, b_.values[out].name + "_last", b_.values[out].type.dtype, kNoValue);
  wrap_parts(p, rank, x, last_x, out, last_y);
  p.node.inputs[0] = last_x;
  p.node.outputs[0] = last_y;
  if (is_new) emit(make_transpose(x, last_x, to_last(rank)));
  emit(std::move(p));
  emit(make_transpose(last_y, out, to_first(rank)));
  last_rank_.resize(b_.values.size(), 0);
  last_rank_[out] = rank;
}

void LastOrder::wrap_parts(PlanNode& p, int rank, ValueId x, ValueId last_x, ValueId out, ValueId last_y) {
  if (p.parts.empty()) return;
  const ValueId first_x = add_value(b_, b_.values[x].name + "_first", b_.values[x].type.dtype, x);
  const ValueId first_y = add_value(b_, b_.values[out].name + "_first", b_.values[out].type.dtype, out);
  for (Node& part : p.parts) {
    for (ValueId& v : part.inputs)
      if (v == x) v = first_x;
    for (ValueId& v : part.outputs)
      if (v == out) v = first_y;
  }
  p.parts.insert(p.parts.begin(), make_transpose(last_x, first_x, to_first(rank)).node);
  p.parts.push_back(make_transpose(first_y, last_y, to_last(rank)).node);
}

PlanNode LastOrder::make_transpose(ValueId from, ValueId to, std::vector<int64_t> perm) {
  PlanNode p =
      make_node(b_, *OpRegistry::instance().find("Transpose"), "transpose_to_" + b_.values[to].name, {from}, to);
  p.node.attributes.set("perm", std::move(perm));
  return p;
}

}  // namespace asc
