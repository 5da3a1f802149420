// Binary operators with broadcasting: a row function for each form (vector-vector, scalar-vector, vector-scalar) and
// the launch functions around it.
#pragma once

#include <type_traits>

#include "backends/cpu/elementwise.h"

namespace asc {

// Row functions of one operator. They return void, or false where a value is invalid.
template <typename Fn>
struct RowForms {
  Fn vv, sv, vs;
  Fn choose(const Broadcast<2>& b) const { return b.is_repeated[0] ? sv : b.is_repeated[1] ? vs : vv; }
};

template <typename Fn>
struct BinaryTiling : PlainTiling<BinaryTiling<Fn>> {
  Fn row = nullptr;
  const char* error = "";  // where row returns false
  Broadcast<2> shape;
  explicit BinaryTiling(const Broadcast<2>& b) : shape(b) {}
};

template <typename Fn>
struct BinaryLaunch;
template <typename R, typename A, typename B, typename Y>
struct BinaryLaunch<R (*)(const A*, const B*, Y*, size_t)> {
  using Fn = R (*)(const A*, const B*, Y*, size_t);

  static bool call(Fn row, const A* a, const B* b, Y* y, size_t n) {
    if constexpr (std::is_void_v<R>)
      return row(a, b, y, n), true;
    else
      return row(a, b, y, n);
  }
  static Status one_row(const Task& task, void* const* slots, Worker& worker) {
    const auto& t = *static_cast<const BinaryTiling<Fn>*>(task.tiling);
    const bool ok =
        call(t.row, task.input<A>(slots, 0), task.input<B>(slots, 1), task.output<Y>(slots, 0), t.shape.row_size);
    return ok ? Status::kOk : worker.fail(Status::kInvalidValue, t.error);
  }
  static Status rows(const Task& task, void* const* slots, Worker& worker) {
    const auto& t = *static_cast<const BinaryTiling<Fn>*>(task.tiling);
    const auto* a = task.input<A>(slots, 0);
    const auto* b = task.input<B>(slots, 1);
    auto* y = task.output<Y>(slots, 0);
    const bool ok = t.shape.for_each_row([&](const int64_t* offsets, size_t first) {
      return call(t.row, a + offsets[0], b + offsets[1], y + first, t.shape.row_size);
    });
    return ok ? Status::kOk : worker.fail(Status::kInvalidValue, t.error);
  }
};

inline Broadcast<2> binary_shape(const TilingContext& ctx) {
  const Shape* inputs[] = {&ctx.input(0), &ctx.input(1)};
  return Broadcast<2>(ctx.output(0), inputs);
}

template <typename Fn>
std::shared_ptr<const Tiling> tile_rows(const TilingContext& ctx, const RowForms<Fn>& forms, const char* implementation,
                                        const char* error = "") {
  auto t = std::make_shared<BinaryTiling<Fn>>(binary_shape(ctx));
  t->row = forms.choose(t->shape);
  t->error = error;
  t->implementation = implementation;
  t->over_inputs = inputs_like_output(ctx);
  t->launch = t->shape.row_count == 1 ? BinaryLaunch<Fn>::one_row : BinaryLaunch<Fn>::rows;
  return t;
}

// --- plain loops for Op::apply(T, T) -> Y --------------------------------------------------------------------------

template <typename T, typename Y, typename Op>
struct PlainRows {
  static void vv(const T* a, const T* b, Y* y, size_t n) {
    for (size_t i = 0; i < n; ++i) y[i] = static_cast<Y>(Op::apply(a[i], b[i]));
  }
  static void sv(const T* a, const T* b, Y* y, size_t n) {
    const T s = *a;
    for (size_t i = 0; i < n; ++i) y[i] = static_cast<Y>(Op::apply(s, b[i]));
  }
  static void vs(const T* a, const T* b, Y* y, size_t n) {
    const T s = *b;
    for (size_t i = 0; i < n; ++i) y[i] = static_cast<Y>(Op::apply(a[i], s));
  }
  static constexpr RowForms<void (*)(const T*, const T*, Y*, size_t)> kForms = {vv, sv, vs};
};

template <typename T, typename Y, typename Op>
std::shared_ptr<const Tiling> tile_plain(const TilingContext& ctx) {
  return tile_rows(ctx, PlainRows<T, Y, Op>::kForms, "scalar");
}

// --- float32 by the vector table, 16-bit floats through it -----------------------------------------------------------

// M: a member of type BinaryRows or CompareRows.
template <auto M>
auto vector_forms() {
  const auto& rows = vec_table().*M;
  return RowForms<decltype(rows.vv)>{rows.vv, rows.sv, rows.vs};
}
template <auto M>
std::shared_ptr<const Tiling> tile_vector(const TilingContext& ctx) {
  return tile_rows(ctx, vector_forms<M>(), "vector");
}

// Y is float (narrowed to the 16-bit type) or uint8_t (stored as is).
template <typename Y>
struct HalfTiling : PlainTiling<HalfTiling<Y>> {
  void (*row)(const float*, const float*, Y*, size_t) = nullptr;
  HalfCodec codec;
  Broadcast<2> shape;
  explicit HalfTiling(const Broadcast<2>& b) : shape(b) {}

  void run_row(const uint16_t* a, const uint16_t* b, void* y, size_t first) const {
    alignas(kAlignment) float wide_a[kChunk], wide_b[kChunk];
    if (shape.is_repeated[0]) codec.widen(a, wide_a, 1);
    if (shape.is_repeated[1]) codec.widen(b, wide_b, 1);
    for (size_t i = 0; i < shape.row_size; i += kChunk) {
      const size_t n = shape.row_size - i < kChunk ? shape.row_size - i : kChunk;
      if (!shape.is_repeated[0]) codec.widen(a + i, wide_a, n);
      if (!shape.is_repeated[1]) codec.widen(b + i, wide_b, n);
      if constexpr (std::is_same_v<Y, float>) {
        alignas(kAlignment) float wide_y[kChunk];
        row(wide_a, wide_b, wide_y, n);
        codec.narrow(wide_y, static_cast<uint16_t*>(y) + first + i, n);
      } else {
        row(wide_a, wide_b, static_cast<Y*>(y) + first + i, n);
      }
    }
  }
  static Status run(const Task& task, void* const* slots, Worker&) {
    const auto& t = *static_cast<const HalfTiling*>(task.tiling);
    const auto* a = task.input<uint16_t>(slots, 0);
    const auto* b = task.input<uint16_t>(slots, 1);
    auto* y = task.output<void>(slots, 0);
    t.shape.for_each_row([&](const int64_t* offsets, size_t first) {
      t.run_row(a + offsets[0], b + offsets[1], y, first);
      return true;
    });
    return Status::kOk;
  }
};

template <typename Y>
std::shared_ptr<const Tiling> tile_half_rows(const TilingContext& ctx,
                                             const RowForms<void (*)(const float*, const float*, Y*, size_t)>& forms,
                                             const char* implementation) {
  auto t = std::make_shared<HalfTiling<Y>>(binary_shape(ctx));
  t->row = forms.choose(t->shape);
  t->codec = half_codec(ctx.dtype(0));
  t->implementation = implementation;
  t->over_inputs = inputs_like_output(ctx);
  t->launch = HalfTiling<Y>::run;
  return t;
}
template <auto M>
std::shared_ptr<const Tiling> tile_half(const TilingContext& ctx) {
  return tile_half_rows(ctx, vector_forms<M>(), "vector");
}

}  // namespace asc
