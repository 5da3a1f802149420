// DynamicQuantizeLSTM: weights of bytes. The input, and at each step the state of the batch, are rounded to bytes by
// their own range, so that all products are of bytes.
#include "backends/cpu/byte_gemm.h"
#include "backends/cpu/byte_lstm.h"
#include "backends/cpu/lstm_pass.h"
#include "backends/cpu/quantize.h"
#include "base/hash.h"

namespace asc::cpu {
namespace {

enum Input { kWScale = 8, kWZero, kRScale, kRZero };
constexpr int kWeightInputs[] = {kW, kR, kWScale, kWZero, kRScale, kRZero};

struct QuantizedTiling : TilingOf<QuantizedTiling> {
  LstmPlan plan;
  bool is_signed = false;
  bool packs_bias = false;            // else it is summed in each launch
  uint64_t given = 0;                 // bit i: input i is given
  int64_t w_scales = 1, w_zeros = 1;  // of each direction: one, or one for each column
  int64_t r_scales = 1, r_zeros = 1;
  size_t scratch_bytes = 0;                         // of a direction
  bool overlaps() const { return plan.parts > 1; }  // products of the input with steps before them
  int scratches() const { return overlaps() ? plan.r.directions : plan.r.scratches(); }
  bool has(int i) const { return (given >> i) & 1u; }
};

// One weight matrix with its scales, one for each column.
struct ScaledMatrix {
  ByteMatrix bytes;
  const float* scales = nullptr;  // of the padded columns; behind them, 1 where all are finite
  bool is_finite() const { return scales[ByteMatrix::padded_columns(bytes.n)] != 0.0f; }
};

ScaledMatrix view(const void* packed, int64_t k, int64_t n) {
  ScaledMatrix m;
  m.bytes = ByteMatrix::of(packed, k, n);
  m.scales = reinterpret_cast<const float*>(static_cast<const char*>(packed) + ByteMatrix::packed_bytes(k, n));
  return m;
}

size_t matrix_bytes(int64_t k, int64_t n) {
  return ByteMatrix::packed_bytes(k, n) +
         round_up(static_cast<size_t>(ByteMatrix::padded_columns(n) + 1) * sizeof(float));
}

size_t direction_bytes(const QuantizedTiling& t) {
  return matrix_bytes(t.plan.r.in, t.plan.gates()) + matrix_bytes(t.plan.r.hidden, t.plan.gates()) +
         round_up(static_cast<size_t>(t.plan.gates()) * sizeof(float));
}

void pack_matrix(const QuantizedTiling& t, int d, int64_t k, const void* bytes, const void* scales, int64_t scale_count,
                 const void* zeros, int64_t zero_count, void* packed) {
  const int64_t n = t.plan.gates();
  const auto* from = static_cast<const char*>(bytes) + d * k * n;
  const auto* zero = zeros ? static_cast<const char*>(zeros) + d * zero_count : nullptr;
  const auto pack = [&](const char* b, const char* z) {
    pack_bytes(b, t.is_signed, {z, zero_count == 1 ? 0 : 1}, k, n, packed);
  };
  if (t.plan.side() == t.plan.r.hidden) {
    pack(from, zero);
  } else {
    std::vector<char> placed(static_cast<size_t>((k + 1) * n));
    char* placed_zero = placed.data() + k * n;
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = t.plan.place_of(j);
      for (int64_t p = 0; p < k; ++p) placed[static_cast<size_t>(p * n + at)] = from[p * n + j];
      if (zero_count > 1) placed_zero[at] = zero[j];
    }
    pack(placed.data(), zero_count > 1 ? placed_zero : zero);
  }
  auto* to = const_cast<float*>(view(packed, k, n).scales);
  std::fill_n(to, ByteMatrix::padded_columns(n), 0.0f);
  const float* scale = static_cast<const float*>(scales) + d * scale_count;
  for (int64_t j = 0; j < n; ++j) to[t.plan.place_of(j)] = scale[scale_count == 1 ? 0 : j];
  to[ByteMatrix::padded_columns(n)] = are_finite(to, n) ? 1.0f : 0.0f;
}

const float* bias_of(const QuantizedTiling& t, const void* packed) {
  const int64_t n = t.plan.gates();
  return reinterpret_cast<const float*>(static_cast<const char*>(packed) + matrix_bytes(t.plan.r.in, n) +
                                        matrix_bytes(t.plan.r.hidden, n));
}

void pack_direction(const QuantizedTiling& t, int d, const void* const* inputs, void* packed) {
  const Recurrence& r = t.plan.r;
  const auto given = [&](int i) { return t.has(i) ? inputs[i] : nullptr; };
  pack_matrix(t, d, r.in, inputs[kW], inputs[kWScale], t.w_scales, given(kWZero), t.w_zeros, packed);
  pack_matrix(t, d, r.hidden, inputs[kR], inputs[kRScale], t.r_scales, given(kRZero), t.r_zeros,
              static_cast<char*>(packed) + matrix_bytes(r.in, t.plan.gates()));
  if (t.packs_bias)
    sum_lstm_bias(t.plan, d, static_cast<const float*>(given(kBias)), const_cast<float*>(bias_of(t, packed)));
}

void pack_weights(const Tiling& tiling, const void* const* inputs, void* packed) {
  const auto& t = static_cast<const QuantizedTiling&>(tiling);
  for (int d = 0; d < t.plan.r.directions; ++d)
    pack_direction(t, d, inputs, static_cast<char*>(packed) + static_cast<size_t>(d) * direction_bytes(t));
}

// The workspace of a direction.
struct Scratch {
  Scratch(const QuantizedTiling& t, bool needs_weights, Cutter& c)
      : pass(t.plan, c),
        state(c.take<uint8_t>(t.plan.r.batch * t.plan.r.hidden)),
        input_sums(c.take<int32_t>(t.plan.r.chunk * t.plan.r.batch)),
        state_sums(c.take<int32_t>(t.plan.r.batch)),
        bias(c.take<float>(t.packs_bias ? 0 : t.plan.gates())),
        weights(c.take<char>(needs_weights ? static_cast<int64_t>(direction_bytes(t)) : 0)) {}
  LstmScratch<uint8_t> pass;
  uint8_t* state;
  int32_t *input_sums, *state_sums;  // of rows
  float* bias;
  char* weights;
};

class ByteWeights {
 public:
  ByteWeights(const QuantizedTiling& t, const void* packed, const Scratch& s, ByteScale x)
      : t_(t),
        s_(s),
        x_scale_(x.scale),
        x_zero_(x.zero),
        w_(view(packed, t.plan.r.in, t.plan.gates())),
        r_(view(static_cast<const char*>(packed) + matrix_bytes(t.plan.r.in, t.plan.gates()), t.plan.r.hidden,
                t.plan.gates())) {}

  ByteGemmArgs input_product(const uint8_t* rows, int64_t m, const float* bias, float* sums) const {
    return product(w_, m, rows, s_.input_sums, x_scale_, &x_zero_, bias, 0, sums);
  }
  void input(const uint8_t* rows, int64_t m, const float* bias, float* sums) const {
    byte_gemm().scaled(input_product(rows, m, bias, sums));
  }
  void state(int64_t step, const float* state, const float* part, float* sums) const {
    const Recurrence& r = t_.plan.r;
    if (adds_nothing(step, state)) return void(std::copy_n(part, r.batch * t_.plan.gates(), sums));
    const ByteScale q = quantize_bytes(state, r.batch * r.hidden, s_.state);
    const int32_t zero = q.zero;
    byte_gemm().scaled(state_product(step, q.scale, &zero, part, sums));
  }
  void fetch_state_weights(ByteLstmBeside& beside) const {
    beside.ahead = reinterpret_cast<const char*>(r_.bytes.bytes);
    beside.ahead_end = beside.ahead + r_.bytes.k * r_.bytes.n;
  }
  // A step and its cells, with parts of a product beside it.
  void whole_step(int64_t step, const float* part, float* cell, const float* state, float* next,
                  ByteLstmBeside& beside) const {
    const LstmPlan& p = t_.plan;
    if (adds_nothing(step, state)) {
      const auto side = static_cast<size_t>(p.side()), units = static_cast<size_t>(p.r.hidden);
      return vec_table().lstm_cells(part, cell, next, units, side);
    }
    const ByteScale q = quantize_bytes(state, p.r.hidden, s_.state);
    const int32_t zero = q.zero;
    byte_lstm()->step({state_product(step, q.scale, &zero, part, nullptr), cell, next}, beside);
  }

 private:
  static ByteGemmArgs product(const ScaledMatrix& b, int64_t m, const uint8_t* a, int32_t* row_sums, float scale,
                              const int32_t* zero, const float* add, int64_t add_row, float* sums) {
    ByteGemmArgs g;
    g.m = m;
    g.a = a;
    g.a_zeros = zero;
    g.row_sums = row_sums;
    g.b = b.bytes;
    g.y = sums;
    g.a_scale = scale;
    g.scales = b.scales;
    g.add = add, g.add_row = add_row;
    if (b.bytes.has_zeros()) sum_byte_rows(a, false, m, b.bytes.k, row_sums);
    return g;
  }

  bool adds_nothing(int64_t step, const float* state) const {
    if (step > 0 || !r_.is_finite()) return false;
    float low, high;
    vec_table().range_with_zero(state, static_cast<size_t>(t_.plan.r.batch * t_.plan.r.hidden), &low, &high);
    return low == 0.0f && high == 0.0f;  // not where NaN is
  }
  ByteGemmArgs state_product(int64_t step, float scale, const int32_t* zero, const float* part, float* sums) const {
    ByteGemmArgs g = product(r_, t_.plan.r.batch, s_.state, s_.state_sums, scale, zero, part, t_.plan.gates(), sums);
    g.backwards = step % 2 != 0;
    return g;
  }

  const QuantizedTiling& t_;
  const Scratch& s_;
  const float x_scale_;
  const int32_t x_zero_;
  const ScaledMatrix w_, r_;
};

// A direction of a launch.
class Direction {
 public:
  Direction(const QuantizedTiling& t, const Task& task, void* const* slots, int d, char* memory, const uint8_t* x,
            ByteScale q)
      : t_(t),
        cutter_(memory),
        scratch_(t, t.packed_bytes == 0, cutter_),
        packed_(weights_of(t, task, slots, d, scratch_.weights)),
        pass_(task, slots, t.plan, scratch_.pass, d, x, find_bias(task, slots, d)),
        weights_(t, packed_, scratch_, q) {}

  Direction(const Direction&) = delete;
  Direction& operator=(const Direction&) = delete;

  // Where products overlap, that of each chunk is done beside the steps of the chunk before, and the first one of
  // `next`, which runs after this (null: none), beside the last steps.
  void run(Direction* next = nullptr) {
    if (!t_.overlaps()) return pass_.run(weights_);
    if (!has_input_) {
      ByteLstmBeside input = first_input();
      byte_lstm()->finish(input);
    }
    const int64_t chunk = t_.plan.r.chunk, longest = pass_.longest();
    for (int64_t begin = 0; begin < longest; begin += chunk) {
      ByteLstmBeside beside;
      if (begin + chunk < longest)
        beside.product = input_product(begin + chunk);
      else if (next)
        beside = next->first_input();
      pass_.run_steps_by(begin, [&](auto... operands) { weights_.whole_step(operands..., beside); });
      byte_lstm()->finish(beside);
    }
    pass_.end();
  }

 private:
  static const char* weights_of(const QuantizedTiling& t, const Task& task, void* const* slots, int d, char* own) {
    if (t.packed_bytes)
      return static_cast<const char*>(task.packed(slots)) + static_cast<size_t>(d) * direction_bytes(t);
    const void* inputs[kRZero + 1] = {};
    for (int i : kWeightInputs) inputs[i] = optional_input<char>(task, slots, i);
    pack_direction(t, d, inputs, own);
    return own;
  }

  const float* find_bias(const Task& task, void* const* slots, int d) const {
    if (t_.packs_bias) return bias_of(t_, packed_);
    sum_lstm_bias(t_.plan, d, optional_input<float>(task, slots, kBias), scratch_.bias);
    return scratch_.bias;
  }

  ByteGemmArgs input_product(int64_t begin) const {
    ByteGemmArgs product;
    pass_.with_input(begin, [&](auto... operands) { product = weights_.input_product(operands...); });
    return product;
  }

  // With it, the weights of the steps that follow are fetched.
  ByteLstmBeside first_input() {
    has_input_ = true;
    ByteLstmBeside input;
    input.product = input_product(0);
    weights_.fetch_state_weights(input);
    return input;
  }

  const QuantizedTiling& t_;
  Cutter cutter_;
  const Scratch scratch_;
  const char* const packed_;
  const LstmPass<uint8_t> pass_;
  ByteWeights weights_;
  bool has_input_ = false;  // of the first chunk
};

Status launch_quantized(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const QuantizedTiling*>(task.tiling);
  const Recurrence& r = t.plan.r;
  const auto* lengths = optional_input<int32_t>(task, slots, kLengths);
  const Status status = check_lengths(r, lengths, worker);
  if (status != Status::kOk) return status;
  Cutter cutter(task.workspace(slots));
  auto* x = cutter.take<uint8_t>(r.steps * r.batch * r.in);
  auto* scratches = cutter.take<char>(0);
  // What lies behind the longest sequence has no part in the range.
  const int64_t count = longest_of(r, lengths) * r.batch * r.in;
  const ByteScale q = quantize_bytes(task.input<float>(slots, kX), count, x);
  const auto make_direction = [&](int d, int64_t number) {
    return Direction(t, task, slots, d, scratches + static_cast<size_t>(number) * t.scratch_bytes, x, q);
  };
  if (t.overlaps() && r.directions == 2 && r.threads == 1) {
    Direction second = make_direction(1, 1);
    make_direction(0, 0).run(&second);
    second.run();
  } else {
    for_each_direction(r, [&](int d, int64_t number) { make_direction(d, number).run(); });
  }
  return Status::kOk;
}

// Steps of a chunk whose product of the input is done beside steps. Eight rows keep the multipliers as busy as the
// cache where inputs are twice as wide as the state; a few words are one chunk.
int64_t chunk_beside(int64_t steps) {
  constexpr int64_t kRows = 8;
  const int64_t chunks = std::max((steps + ByteLstm::kRows - 1) / ByteLstm::kRows, steps / kRows);
  return (steps + chunks - 1) / chunks;
}

std::shared_ptr<const Tiling> tile_quantized(const TilingContext& ctx) {
  auto t = create_tiling<QuantizedTiling>(launch_quantized, byte_gemm().name);
  t->plan = read_lstm(ctx, ctx.input(kR)[1]);
  Recurrence& r = t->plan.r;
  t->is_signed = ctx.dtype(kW) == DType::kInt8;
  bool packs = true;
  for (int i : kWeightInputs) {
    if (!ctx.has_input(i)) continue;
    t->given |= uint64_t{1} << i;
    packs = packs && ctx.is_constant(i);
  }
  if (ctx.has_input(kBias)) t->given |= uint64_t{1} << kBias;
  t->packs_bias = packs && (!t->has(kBias) || ctx.is_constant(kBias));
  const auto each = [&](int i) { return t->has(i) ? count_of(ctx.input(i)) / r.directions : 1; };
  t->w_scales = each(kWScale), t->w_zeros = each(kWZero);
  t->r_scales = each(kRScale), t->r_zeros = each(kRZero);
  bool sides = packs && byte_lstm() && r.in > 0 && r.hidden > 0 && !ctx.has_input(kPeephole) &&
               ByteMatrix::is_whole(r.in, t->plan.gates()) && r.hidden % ByteLstm::kUnits == 0;
  for (int d = 0; d < r.directions; ++d) sides = sides && t->plan.cells[d].is_plain;
  if (sides) {
    for (LstmCell& cell : t->plan.cells) cell.side = ByteLstm::kUnits;
  }
  if (packs) {
    t->packed_bytes = static_cast<size_t>(r.directions) * direction_bytes(*t);
    const uint64_t words[] = {0x716C73746D,
                              static_cast<uint64_t>(r.in),
                              static_cast<uint64_t>(r.hidden),
                              static_cast<uint64_t>(r.directions) << 2 | uint64_t{t->packs_bias} << 1 | t->is_signed,
                              t->given,
                              static_cast<uint64_t>(t->plan.side())};
    t->packed_layout = hash_words(words, 6) | 1;
    t->pack = pack_weights;
  }
  if (sides && r.batch == 1 && r.steps > 0) {
    r.chunk = chunk_beside(r.steps);
    t->plan.parts = 2;
  }
  Cutter cutter(nullptr);
  const Scratch scratch(*t, !packs, cutter);
  t->scratch_bytes = cutter.used();
  t->workspace_bytes =
      round_up(static_cast<size_t>(r.steps * r.batch * r.in)) + static_cast<size_t>(t->scratches()) * t->scratch_bytes;
  return t;
}

}  // namespace

void register_quantized_lstm(KernelRegistry& registry) {
  registry.add("DynamicQuantizeLSTM", DType::kFloat32, tile_quantized);
}

}  // namespace asc::cpu
