// Float32 products: own vector kernels, on packed panels where b is constant and large; OpenBLAS and oneDNN where those
// are quicker, as on several threads. The choice depends on shapes, attributes, constness, options and instruction set.
#include <memory>
#include <vector>

#include "backends/cpu/blas.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/panel_gemm.h"
#include "backends/cpu/product.h"
#include "backends/cpu/small_gemm.h"
#include "backends/cpu/vec_table.h"

namespace asc::cpu {
namespace {

struct FloatProduct : Tiling {
  explicit FloatProduct(const Product& p) : product(p) {}
  Product product;
  bool adds_after = false;
  const float* b(const Task& task, void* const* slots) const {
    return packed_bytes ? static_cast<const float*>(task.packed(slots)) : task.input<float>(slots, 1);
  }
#if ASC_HAVE_ONEDNN
  std::unique_ptr<OneDnnPrimitive> primitive;
  dnnl::memory::desc plain_b, packed_b;
  size_t bytes() const override { return sizeof(FloatProduct) + (primitive ? primitive->bytes() : 0); }
#else
  size_t bytes() const override { return sizeof(FloatProduct); }
#endif
};

void add_to_rows(const Product& p, const float* add, float* c) {
  const VecTable& v = vec_table();
  for (int64_t i = 0; i < p.m; ++i) {
    float* row = c + i * p.n;
    if (p.add_column == 0)
      v.scale_shift(row, row, static_cast<size_t>(p.n), 1.0f, p.beta * add[i * p.add_row]);
    else if (p.beta == 1)
      v.add.vv(row, add + i * p.add_row, row, static_cast<size_t>(p.n));
    else
      v.axpy(p.beta, add + i * p.add_row, row, static_cast<size_t>(p.n));
  }
}

template <typename Multiply>
Status run_batch(const Task& task, void* const* slots, const FloatProduct& t, Multiply multiply) {
  const Product& p = t.product;
  const float *a = task.input<float>(slots, 0), *b = t.b(task, slots);
  const float* add = p.has_add ? task.input<float>(slots, 2) : nullptr;
  float* c = task.output<float>(slots, 0);
  if (p.batch_rank == 0 && !t.adds_after) return multiply(a, b, c, add);
  Status status = Status::kOk;
  for_each_matrix(p, [&](int64_t a_offset, int64_t b_offset, int64_t c_offset) {
    if (status == Status::kOk) status = multiply(a + a_offset, b + b_offset, c + c_offset, add);
    if (t.adds_after) add_to_rows(p, add, c + c_offset);
  });
  return status;
}

SmallGemmArgs small_args(const Product& p, const float* a, const float* b, float* c, const float* add) {
  SmallGemmArgs s;
  s.m = p.m, s.n = p.n, s.k = p.k;
  s.a = a, s.a_row = p.trans_a ? 1 : p.k, s.a_column = p.trans_a ? p.m : 1;
  s.b = b, s.ldb = p.ldb();
  s.c = c, s.ldc = p.n;
  s.add = add, s.add_row = p.add_row;
  s.alpha = p.alpha, s.beta = p.beta;
  return s;
}

Status launch_rows(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const FloatProduct*>(task.tiling);
  const auto rows = small_gemm().rows;
  return run_batch(task, slots, t, [&](const float* a, const float* b, float* c, const float* add) {
    rows(small_args(t.product, a, b, c, t.adds_after ? nullptr : add));
    return Status::kOk;
  });
}

Status launch_dots(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const FloatProduct*>(task.tiling);
  const auto dots = small_gemm().dots;
  return run_batch(task, slots, t, [&](const float* a, const float* b, float* c, const float* add) {
    dots(small_args(t.product, a, b, c, t.adds_after ? nullptr : add));
    return Status::kOk;
  });
}

// n is 1: the roles are exchanged, b is the row and a the transposed matrix.
Status launch_column(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const FloatProduct*>(task.tiling);
  const auto dots = small_gemm().dots;
  return run_batch(task, slots, t, [&](const float* a, const float* b, float* c, const float*) {
    SmallGemmArgs s;
    s.m = 1, s.n = t.product.m, s.k = t.product.k;
    s.a = b, s.a_row = t.product.k;
    s.b = a, s.ldb = t.product.k;
    s.c = c, s.ldc = t.product.m;
    s.alpha = t.product.alpha;
    dots(s);
    return Status::kOk;
  });
}

Status launch_blas(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const FloatProduct*>(task.tiling);
  const Product& p = t.product;
  return run_batch(task, slots, t, [&](const float* a, const float* b, float* c, const float*) {
    gemm(p.trans_a, p.trans_b, p.m, p.n, p.k, p.alpha, a, p.lda(), b, p.ldb(), 0.0f, c, p.n);
    return Status::kOk;
  });
}

Status launch_panels(const Task& task, void* const* slots, Worker&) {
  const auto& t = *static_cast<const FloatProduct*>(task.tiling);
  return run_batch(task, slots, t, [&](const float* a, const float* b, float* c, const float* add) {
    multiply_panels(small_args(t.product, a, b, c, t.adds_after ? nullptr : add));
    return Status::kOk;
  });
}

void pack_b(const Tiling& tiling, const void* const* inputs, void* packed) {
  const Product& p = static_cast<const FloatProduct&>(tiling).product;
  pack_panels(static_cast<const float*>(inputs[1]), p.trans_b ? 1 : p.n, p.trans_b ? p.k : 1, p.k, p.n,
              static_cast<float*>(packed));
}

// A small b is as quick where it lies.
bool wants_panels(const TilingContext& ctx, const Product& p) {
  constexpr int64_t kSmall = int64_t{1} << 15;
  if (!ctx.is_constant(1) || p.batch_rank > 0 || p.n == 1 || p.k == 0) return false;
  return prefers_panels(p.m) && (p.trans_b || p.k * p.n > kSmall);
}

#if ASC_HAVE_ONEDNN
Status launch_onednn(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const FloatProduct*>(task.tiling);
  return run_batch(task, slots, t, [&](const float* a, const float* b, float* c, const float*) {
    void* const data[] = {const_cast<float*>(a), const_cast<float*>(b), c, task.workspace(slots)};
    return t.primitive->execute(data, worker);
  });
}

void pack_onednn(const Tiling& tiling, const void* const* inputs, void* packed) {
  const auto& t = static_cast<const FloatProduct&>(tiling);
  reorder_now(t.plain_b, inputs[1], t.packed_b, packed);
}

// Null where oneDNN refuses or has reference code only.
std::shared_ptr<const Tiling> try_onednn(const TilingContext& ctx, const Product& p) {
  using dnnl::memory;
  constexpr auto kFloat = memory::data_type::f32;
  const auto plain = [](bool trans) { return trans ? memory::format_tag::ba : memory::format_tag::ab; };
  try {
    const double operations = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
    const OpenMpThreads threads(threads_for(ctx, operations));
    const bool packs = ctx.is_constant(1) && p.batch_rank == 0;
    const memory::desc a({p.m, p.k}, kFloat, plain(p.trans_a)), c({p.m, p.n}, kFloat, plain(false));
    const memory::desc b({p.k, p.n}, kFloat, packs ? memory::format_tag::any : plain(p.trans_b));
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::matmul::primitive_desc pd(onednn_engine(), a, b, c, attr);
    if (is_reference(pd)) return nullptr;
    auto t = std::make_shared<FloatProduct>(p);
    t->launch = launch_onednn;
    t->implementation = "onednn";
    t->adds_after = p.has_add;
    t->plain_b = memory::desc({p.k, p.n}, kFloat, plain(p.trans_b));
    t->packed_b = pd.weights_desc();
    if (t->packed_b != t->plain_b) {
      t->packed_bytes = t->packed_b.get_size();
      t->packed_layout = layout_hash(t->packed_b) ^ uint64_t { p.trans_b } << 63;
      t->pack = pack_onednn;
    }
    t->workspace_bytes = pd.scratchpad_desc().get_size();
    t->primitive = std::make_unique<OneDnnPrimitive>(
        dnnl::matmul(pd), std::vector<OneDnnPrimitive::Argument>{{DNNL_ARG_SRC, a},
                                                                 {DNNL_ARG_WEIGHTS, t->packed_b},
                                                                 {DNNL_ARG_DST, c},
                                                                 {DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()}});
    return t;
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

// Where oneDNN pays, as measured: below two million operations its call overhead shows, and own kernels reach the same
// speed on one thread while b stays in the second-level cache.
bool wants_onednn(const TilingContext& ctx, const Product& p) {
  const double operations = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  if (!ctx.options().use_onednn || p.alpha != 1 || operations < 2e6 || p.m == 1 || p.n == 1) return false;
  return threads_for(ctx, operations) > 1 || (!wants_panels(ctx, p) && !prefers_rows(p.m, p.n, p.k));
}
#endif

}  // namespace

std::shared_ptr<const Tiling> tile_float_product(const TilingContext& ctx, const Product& p) {
  if (p.is_empty()) return create_empty_tiling();
#if ASC_HAVE_ONEDNN
  if (wants_onednn(ctx, p)) {
    if (auto t = try_onednn(ctx, p)) return t;
  }
#endif
  auto t = std::make_shared<FloatProduct>(p);
  t->adds_after = p.has_add;
  const bool adds_by_row = p.has_add && p.add_column == 1;
  if (p.n == 1 && !p.trans_a) {
    t->launch = launch_column;
    t->implementation = "vector:column";
    return t;
  }
  if (wants_panels(ctx, p)) {
    t->launch = launch_panels;
    t->implementation = "vector:panels";
    t->packed_bytes = static_cast<size_t>(p.k * p.n) * sizeof(float);
    t->packed_layout = panel_layout(p.k, p.n, p.trans_b);
    t->pack = pack_b;
  } else if (!p.trans_b && prefers_rows(p.m, p.n, p.k)) {
    t->launch = launch_rows;
    t->implementation = "vector:rows";
  } else if (p.trans_b && !p.trans_a && prefers_dots(p.m, p.n, p.k)) {
    t->launch = launch_dots;
    t->implementation = "vector:dots";
  } else {
    t->launch = launch_blas;
    t->implementation = blas_name();
    return t;
  }
  if (adds_by_row) t->adds_after = false;
  return t;
}

}  // namespace asc::cpu
