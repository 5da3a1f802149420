// Where: a choice between two tensors, by element size and not by type.
#include <cstring>

#include "backends/cpu/elementwise.h"

namespace asc {
namespace {

template <typename U>
using WhereRow = void (*)(const uint8_t* condition, const U* a, const U* b, U* y, size_t n);

// Without branches, since conditions are often unpredictable.
template <typename U, bool kRepeatedA, bool kRepeatedB>
void select_row(const uint8_t* condition, const U* a, const U* b, U* y, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const U mask = static_cast<U>(U{0} - static_cast<U>(condition[i] != 0));
    const U va = a[kRepeatedA ? 0 : i], vb = b[kRepeatedB ? 0 : i];
    y[i] = static_cast<U>((va & mask) | (vb & static_cast<U>(~mask)));
  }
}
// One condition for the whole row.
template <typename U, bool kRepeatedA, bool kRepeatedB>
void constant_row(const uint8_t* condition, const U* a, const U* b, U* y, size_t n) {
  const bool first = *condition != 0;
  const U* from = first ? a : b;
  if (first ? kRepeatedA : kRepeatedB) {
    const U value = *from;
    for (size_t i = 0; i < n; ++i) y[i] = value;
  } else if (from != y) {
    std::memcpy(y, from, n * sizeof(U));
  }
}

template <typename U>
WhereRow<U> choose_row(const Broadcast<3>& b) {
  static constexpr WhereRow<U> kSelect[] = {select_row<U, false, false>, select_row<U, false, true>,
                                            select_row<U, true, false>, select_row<U, true, true>};
  static constexpr WhereRow<U> kConstant[] = {constant_row<U, false, false>, constant_row<U, false, true>,
                                              constant_row<U, true, false>, constant_row<U, true, true>};
  const int form = (b.is_repeated[1] ? 2 : 0) + (b.is_repeated[2] ? 1 : 0);
  if (b.is_repeated[0]) return kConstant[form];
  if constexpr (sizeof(U) == 4) {
    const VecTable& v = vec_table();
    const WhereRow<U> vector[] = {v.select_vv, v.select_vs, v.select_sv, v.select_ss};
    return vector[form];
  }
  return kSelect[form];
}

template <typename U>
struct WhereTiling : PlainTiling<WhereTiling<U>> {
  WhereRow<U> row = nullptr;
  Broadcast<3> shape;
  explicit WhereTiling(const Broadcast<3>& b) : shape(b) {}
};

template <typename U>
Status launch_where(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const WhereTiling<U>*>(task.tiling);
  const auto* condition = task.input<uint8_t>(slots, 0);
  const auto* a = task.input<U>(slots, 1);
  const auto* b = task.input<U>(slots, 2);
  auto* y = task.output<U>(slots, 0);
  t.shape.for_each_row([&](const int64_t* offsets, size_t first) {
    t.row(condition + offsets[0], a + offsets[1], b + offsets[2], y + first, t.shape.row_size);
    return true;
  });
  return Status::kOk;
}

template <typename U>
std::shared_ptr<const Tiling> tile_where(const TilingContext& ctx) {
  const Shape* inputs[] = {&ctx.input(0), &ctx.input(1), &ctx.input(2)};
  auto t = std::make_shared<WhereTiling<U>>(Broadcast<3>(ctx.output(0), inputs));
  t->row = choose_row<U>(t->shape);
  t->implementation = sizeof(U) == 4 ? "vector" : "scalar";
  t->launch = launch_where<U>;
  return t;
}

}  // namespace

void register_where_kernels(KernelRegistry& registry) {
  registry.add("Where", DType::kBool | DType::kInt8 | DType::kUInt8, tile_where<uint8_t>, 1);
  registry.add("Where", kHalfFloats | DType::kInt16 | DType::kUInt16, tile_where<uint16_t>, 1);
  registry.add("Where", DType::kFloat32 | DType::kInt32 | DType::kUInt32, tile_where<uint32_t>, 1);
  registry.add("Where", DType::kFloat64 | DType::kInt64 | DType::kUInt64, tile_where<uint64_t>, 1);
}

}  // namespace asc
