#include "backends/cpu/recurrent.h"

#include <cmath>
#include <limits>
#include <string>

#include "backends/cpu/blas.h"
#include "backends/cpu/panel_gemm.h"
#include "backends/cpu/small_gemm.h"
#include "base/hash.h"

namespace asc::cpu {

Recurrence read_recurrence(const TilingContext& ctx, int64_t hidden, int gates) {
  const Shape& x = ctx.input(0);
  Recurrence r;
  r.steps = x[0], r.batch = x[1], r.in = x[2], r.hidden = hidden;
  const std::string_view direction = ctx.attributes().get_string("direction", "forward");
  r.directions = direction == "bidirectional" ? 2 : 1;
  r.is_reverse = direction == "reverse";
  // The input part of a chunk stays in the second-level cache.
  constexpr int64_t kChunkElements = int64_t{1} << 17;
  const int64_t step_elements = std::max<int64_t>(r.batch * std::max(gates * r.hidden, r.in), 1);
  r.chunk = std::clamp<int64_t>(kChunkElements / step_elements, 1, std::max<int64_t>(r.steps, 1));
  const auto weights = static_cast<double>((r.in + r.hidden) * gates * r.hidden);
  if (r.directions > 1) r.threads = threads_for(ctx, 4.0 * static_cast<double>(r.steps * r.batch) * weights);
  return r;
}

void pack_weights_once(Tiling& t, const Recurrence& r, uint64_t kind, int64_t weight_elements, uint64_t layout,
                       void (*pack)(const Tiling&, const void* const*, void*)) {
  const uint64_t words[] = {kind, static_cast<uint64_t>(r.in), static_cast<uint64_t>(r.hidden),
                            static_cast<uint64_t>(r.directions), layout};
  t.packed_bytes = static_cast<size_t>(r.directions * weight_elements) * sizeof(float);
  t.packed_layout = hash_words(words, 5) | 1;
  t.pack = pack;
}

Status check_lengths(const Recurrence& r, const int32_t* lengths, Worker& worker) {
  for (int64_t b = 0; lengths && b < r.batch; ++b)
    if (lengths[b] < 0 || lengths[b] > r.steps)
      return worker.fail(Status::kInvalidValue, "sequence_lens holds " + std::to_string(lengths[b]) + " at position " +
                                                    std::to_string(b) + "; expected 0 to " + std::to_string(r.steps));
  return Status::kOk;
}

StepWeights::StepWeights(int64_t m, int64_t n, int64_t k) : n_(n), k_(k), in_panels_(prefers_panels(m)) {}

// In blocks, which are compared as vectors.
bool are_zero(const float* x, int64_t n) {
  constexpr int64_t kBlock = 64;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    bool is_any = false;
    for (int64_t i = begin; i < std::min(begin + kBlock, n); ++i) is_any |= x[i] != 0.0f;
    if (is_any) return false;
  }
  return true;
}

bool are_finite(const float* x, int64_t n) {
  bool is_other = false;
  for (int64_t i = 0; i < n; ++i) is_other |= !(std::fabs(x[i]) <= std::numeric_limits<float>::max());
  return !is_other;
}

void StepWeights::pack(const float* from, float* to) const {
  to[n_ * k_] = are_finite(from, n_ * k_) ? 1.0f : 0.0f;
  if (in_panels_) return pack_panels(from, 1, k_, k_, n_, to);
  for (int64_t j = 0; j < n_; ++j)
    for (int64_t p = 0; p < k_; ++p) to[p * n_ + j] = from[j * k_ + p];
}

void StepWeights::multiply(int64_t m, const float* a, const float* packed, const float* add, int64_t add_row, float* c,
                           bool backwards) const {
  if (packed[n_ * k_] != 0.0f && are_zero(a, m * k_)) {
    for (int64_t i = 0; i < m; ++i)
      add ? std::copy_n(add + i * add_row, n_, c + i * n_) : std::fill_n(c + i * n_, n_, 0.0f);
    return;
  }
  if (in_panels_ || prefers_rows(m, n_, k_)) {
    SmallGemmArgs s;
    s.m = m, s.n = n_, s.k = k_;
    s.a = a, s.a_row = k_;
    s.b = packed, s.ldb = n_;
    s.c = c, s.ldc = n_;
    s.add = add, s.add_row = add_row;
    return in_panels_ ? multiply_panels(s, backwards) : small_gemm().rows(s);
  }
  for (int64_t i = 0; add && i < m; ++i) std::copy_n(add + i * add_row, n_, c + i * n_);
  gemm(false, false, m, n_, k_, 1.0f, a, k_, packed, n_, add ? 1.0f : 0.0f, c, n_);
}

void load_state(const Recurrence& r, int d, const float* values, float* state) {
  const int64_t n = r.batch * r.hidden;
  if (values)
    std::copy_n(values + d * n, n, state);
  else
    std::fill_n(state, n, 0.0f);
}

void store_state(const Recurrence& r, int d, const float* state, float* to) {
  const int64_t n = r.batch * r.hidden;
  std::copy_n(state, n, to + d * n);
}

}  // namespace asc::cpu
