// TopK over [outer, axis, inner]: candidates (key, position) are selected in scratch, lane by lane. Equal keys keep the
// lower position first; NaN counts as the greatest value.
#include <algorithm>
#include <type_traits>

#include "backends/cpu/real_io.h"
#include "backends/cpu/reduce.h"

namespace asc::cpu {
namespace {

template <typename V>
struct Candidate {
  V key;
  int64_t position;
};

struct TopKTiling : TilingOf<TopKTiling> {
  const VecTable* vec = &vec_table();
  int64_t outer = 1, axis = 1, inner = 1;
  int64_t k = 0;
  bool is_largest = true;
};

template <typename V>
inline bool is_less(V a, V b) {
  return a < b || (b != b && a == a);
}

template <typename V>
struct Before {
  bool is_largest;
  bool operator()(const Candidate<V>& a, const Candidate<V>& b) const {
    if (is_largest ? is_less(b.key, a.key) : is_less(a.key, b.key)) return true;
    if (is_largest ? is_less(a.key, b.key) : is_less(b.key, a.key)) return false;
    return a.position < b.position;
  }
};

// Calls next(j) for the candidates 0 .. n-1 and leaves the first k, in order, in `items`: a heap of k for small k (most
// candidates fail one comparison), else selection among all n and one sort.
template <typename V, typename Next>
void select(Candidate<V>* items, int64_t n, int64_t k, bool use_heap, Before<V> before, Next next) {
  const int64_t start = use_heap ? k : n;
  for (int64_t j = 0; j < start; ++j) items[j] = next(j);
  if (!use_heap) {
    if (k < n) std::nth_element(items, items + k, items + n, before);
    return std::sort(items, items + k, before);
  }
  std::make_heap(items, items + k, before);
  for (int64_t j = k; j < n; ++j) {
    const Candidate<V> candidate = next(j);
    if (!before(candidate, items[0])) continue;
    std::pop_heap(items, items + k, before);
    items[k - 1] = candidate;
    std::push_heap(items, items + k, before);
  }
  std::sort_heap(items, items + k, before);
}

template <typename Io>
Status launch_topk(const Task& task, void* const* slots, Worker& worker) {
  using Element = typename Io::Element;
  using Value = typename Io::Value;
  const auto& t = *static_cast<const TopKTiling*>(task.tiling);
  const auto* x = task.input<Element>(slots, 0);
  Element* values = task.has_output(slots, 0) ? task.output<Element>(slots, 0) : nullptr;
  int64_t* indices = task.has_output(slots, 1) ? task.output<int64_t>(slots, 1) : nullptr;
  const bool use_heap = t.k <= t.axis / 16;
  auto* items = static_cast<Candidate<Value>*>(worker.scratch((use_heap ? t.k : t.axis) * sizeof(Candidate<Value>)));
  Value buffer;
  for (int64_t o = 0; o < t.outer; ++o, x += t.axis * t.inner) {
    for (int64_t c = 0; c < t.inner; ++c) {
      const auto next = [&](int64_t j) {
        return Candidate<Value>{*Io::load(*t.vec, x + j * t.inner + c, &buffer, 1), j};
      };
      select(items, t.axis, t.k, use_heap, Before<Value>{t.is_largest}, next);
      for (int64_t j = 0; j < t.k; ++j) {
        const int64_t at = (o * t.k + j) * t.inner + c;
        if (values) values[at] = x[items[j].position * t.inner + c];
        if (indices) indices[at] = items[j].position;
      }
    }
  }
  return Status::kOk;
}

LaunchFn find_topk(DType type) {
  switch (type) {
    case DType::kFloat32:
      return launch_topk<Float32Io>;
    case DType::kFloat64:
      return launch_topk<PlainIo<double>>;
    case DType::kFloat16:
      return launch_topk<Float16Io>;
    case DType::kBFloat16:
      return launch_topk<BFloat16Io>;
    case DType::kInt8:
      return launch_topk<PlainIo<int8_t>>;
    case DType::kInt16:
      return launch_topk<PlainIo<int16_t>>;
    case DType::kUInt16:
      return launch_topk<PlainIo<uint16_t>>;
    case DType::kInt32:
      return launch_topk<PlainIo<int32_t>>;
    case DType::kUInt32:
      return launch_topk<PlainIo<uint32_t>>;
    case DType::kInt64:
      return launch_topk<PlainIo<int64_t>>;
    case DType::kUInt64:
      return launch_topk<PlainIo<uint64_t>>;
    default:
      return launch_topk<PlainIo<uint8_t>>;
  }
}

std::shared_ptr<const Tiling> tile_topk(const TilingContext& ctx) {
  const Shape& x = ctx.input(0);
  const int axis = checked_axis(ctx, ctx.attr("axis", -1), x.rank());
  const int64_t k = read_int(ctx, 1);
  if (k < 0 || k > x[axis])
    fail_tiling(ctx, "k " + std::to_string(k) + " exceeds the axis of " + x.text() + "; lower it");
  if (count_of(ctx.output(0)) == 0) return create_empty_tiling();
  auto t = create_tiling<TopKTiling>(find_topk(ctx.dtype(0)), "selection");
  t->outer = x.span_of(0, axis);
  t->axis = x[axis];
  t->inner = x.span_of(axis + 1, x.rank());
  t->k = k;
  t->is_largest = ctx.attr("largest", 1) != 0;
  return t;
}

}  // namespace

void register_topk(KernelRegistry& registry) { registry.add("TopK", kNumbers, tile_topk); }

}  // namespace asc::cpu
