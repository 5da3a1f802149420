// Min, Max, Sum and Mean of any number of tensors. Two operands are a binary operator; more are folded chunk by chunk,
// so that each output element is written after all of its inputs were read.
#include <cmath>
#include <cstring>
#include <vector>

#include "backends/cpu/elementwise_binary.h"
#include "backends/cpu/wrapping.h"

namespace asc {
namespace {

// NaN in either operand wins.
struct MaxOp {
  template <typename T>
  static T apply(T a, T b) {
    return a > b || a != a ? a : b;
  }
};
struct MinOp {
  template <typename T>
  static T apply(T a, T b) {
    return a < b || a != a ? a : b;
  }
};

// T: as stored, uint16_t with a codec for 16-bit floats. C: as computed.
template <typename C>
using FoldRow = void (*)(const C* a, const C* b, C* y, size_t n);

template <typename T, typename C>
struct VariadicTiling : Tiling {
  FoldRow<C> row = nullptr;
  HalfCodec codec;
  C divisor = 1;
  size_t row_size = 0, row_count = 0;
  int outer_rank = 0, operand_count = 0;
  int64_t outer_dims[kMaxRank] = {};
  std::vector<int64_t> strides;  // kMaxRank per operand, the row's own last

  size_t bytes() const override { return sizeof(*this) + strides.size() * sizeof(int64_t); }

  const int64_t* strides_of(int operand) const { return strides.data() + operand * kMaxRank; }
  bool is_repeated(int operand) const { return strides_of(operand)[outer_rank] == 0; }

  // First element that `operand` reads for the output's row `r`.
  size_t offset(int operand, size_t r) const {
    int64_t at = 0;
    for (int d = outer_rank - 1; d >= 0; --d) {
      const auto size = static_cast<size_t>(outer_dims[d]);
      at += static_cast<int64_t>(r % size) * strides_of(operand)[d];
      r /= size;
    }
    return static_cast<size_t>(at);
  }

  void read(const T* x, size_t n, bool repeats, C* to) const {
    const size_t count = repeats ? 1 : n;
    if constexpr (std::is_same_v<T, C>)
      std::memcpy(to, x, count * sizeof(C));
    else
      codec.widen(x, to, count);
    for (size_t i = count; i < n; ++i) to[i] = to[0];
  }
  void write(const C* x, size_t n, T* to) const {
    if constexpr (std::is_same_v<T, C>)
      std::memcpy(to, x, n * sizeof(C));
    else
      codec.narrow(x, to, n);
  }
};

template <typename T, typename C>
Status launch_variadic(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const VariadicTiling<T, C>*>(task.tiling);
  auto* y = task.output<T>(slots, 0);
  alignas(kAlignment) C total[kChunk], next[kChunk];
  for (size_t r = 0; r < t.row_count; ++r) {
    for (size_t i = 0; i < t.row_size; i += kChunk) {
      const size_t n = t.row_size - i < kChunk ? t.row_size - i : kChunk;
      for (int k = 0; k < t.operand_count; ++k) {
        const bool repeats = t.is_repeated(k);
        t.read(task.input<T>(slots, k) + t.offset(k, r) + (repeats ? 0 : i), n, repeats, k ? next : total);
        if (k) t.row(total, next, total, n);
      }
      if (t.divisor != 1)
        for (size_t j = 0; j < n; ++j) total[j] = static_cast<C>(total[j] / t.divisor);
      t.write(total, n, y + r * t.row_size + i);
    }
  }
  return Status::kOk;
}

template <typename T, typename C>
std::shared_ptr<const Tiling> tile_fold(const TilingContext& ctx, FoldRow<C> row, bool is_mean) {
  auto t = std::make_shared<VariadicTiling<T, C>>();
  t->launch = launch_variadic<T, C>;
  t->implementation = "fold";
  t->row = row;
  t->operand_count = ctx.input_count();
  if (is_mean) t->divisor = static_cast<C>(t->operand_count);
  if constexpr (!std::is_same_v<T, C>) t->codec = half_codec(ctx.dtype(0));
  if (ctx.output(0).num_elements() == 0) return t;
  std::vector<const Shape*> inputs;
  for (int i = 0; i < t->operand_count; ++i) inputs.push_back(&ctx.input(i));
  t->strides.assign(inputs.size() * kMaxRank, 1);
  const int rank = merge_dims(ctx.output(0), inputs.data(), t->operand_count, t->outer_dims, t->strides.data());
  t->outer_rank = rank ? rank - 1 : 0;
  t->row_size = rank ? static_cast<size_t>(t->outer_dims[rank - 1]) : 1;
  t->row_count = 1;
  for (int d = 0; d < t->outer_rank; ++d) t->row_count *= static_cast<size_t>(t->outer_dims[d]);
  return t;
}

enum class Mean : bool { kNo, kYes };

bool is_binary(const TilingContext& ctx, Mean mean) { return ctx.input_count() == 2 && mean == Mean::kNo; }

template <auto M, Mean kMean>
std::shared_ptr<const Tiling> tile_float32(const TilingContext& ctx) {
  if (is_binary(ctx, kMean)) return tile_vector<M>(ctx);
  return tile_fold<float, float>(ctx, (vec_table().*M).vv, kMean == Mean::kYes);
}
template <auto M, Mean kMean>
std::shared_ptr<const Tiling> tile_float16(const TilingContext& ctx) {
  if (is_binary(ctx, kMean)) return tile_half<M>(ctx);
  return tile_fold<uint16_t, float>(ctx, (vec_table().*M).vv, kMean == Mean::kYes);
}
template <typename T, typename Op, Mean kMean>
std::shared_ptr<const Tiling> tile_other(const TilingContext& ctx) {
  if (is_binary(ctx, kMean)) return tile_plain<T, T, Op>(ctx);
  return tile_fold<T, T>(ctx, PlainRows<T, T, Op>::vv, kMean == Mean::kYes);
}

template <typename Op, auto M, Mean kMean>
void add_floats(KernelRegistry& registry, const char* name) {
  registry.add(name, DType::kFloat32, tile_float32<M, kMean>);
  registry.add(name, kHalfFloats, tile_float16<M, kMean>);
  registry.add(name, DType::kFloat64, tile_other<double, Op, kMean>);
}
template <typename Op, auto M>
void add_numbers(KernelRegistry& registry, const char* name) {
  add_floats<Op, M, Mean::kNo>(registry, name);
  for_integers([&](auto example) {
    using T = decltype(example);
    registry.add(name, dtype_of<T>(), tile_other<T, Op, Mean::kNo>);
  });
}

}  // namespace

void register_variadic_kernels(KernelRegistry& registry) {
  add_numbers<MaxOp, &VecTable::max>(registry, "Max");
  add_numbers<MinOp, &VecTable::min>(registry, "Min");
  add_numbers<AddOp, &VecTable::add>(registry, "Sum");
  add_floats<AddOp, &VecTable::add, Mean::kYes>(registry, "Mean");
}

}  // namespace asc
