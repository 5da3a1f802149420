// RNN: state = f(x·W' + state·R' + bias), one matrix product per step and operand.
#include <algorithm>
#include <cstring>

#include "backends/cpu/half_adaptor.h"
#include "backends/cpu/lstm_cell.h"
#include "backends/cpu/nn.h"
#include "backends/cpu/recurrent.h"

namespace asc::cpu {
namespace {

enum Input { kX, kW, kR, kBias, kLengths, kInitialState };

struct RnnTiling : TilingOf<RnnTiling> {
  int64_t steps = 0, batch = 0, in = 0, hidden = 0;
  int directions = 1;
  bool is_reverse = false;  // of direction 0; direction 1 is always reverse
  float clip = 0;           // bound of what enters activations; 0: none
  Activation activation[2];
};

// The scratch of one launch: weights transposed, (in, hidden) and (hidden, hidden).
struct Scratch {
  float *w, *r, *bias, *state, *rows, *sums, *next;
  Scratch(const RnnTiling& t, float* base)
      : w(base),
        r(w + t.in * t.hidden),
        bias(r + t.hidden * t.hidden),
        state(bias + t.hidden),
        rows(state + t.batch * t.hidden),
        sums(rows + t.batch * t.in),
        next(sums + t.batch * t.hidden) {}
  static int64_t elements(const RnnTiling& t) {
    return t.in * t.hidden + t.hidden * t.hidden + t.hidden + 3 * t.batch * t.hidden + t.batch * t.in;
  }
};

template <typename T>
const T* optional(const Task& task, void* const* slots, int i) {
  return task.has_input(slots, i) ? task.input<T>(slots, i) : nullptr;
}

void prepare(const Task& task, void* const* slots, const RnnTiling& t, int d, const Scratch& s) {
  const int64_t h = t.hidden, n = t.batch * h;
  transpose(task.input<float>(slots, kW) + d * h * t.in, h, t.in, s.w);
  transpose(task.input<float>(slots, kR) + d * h * h, h, h, s.r);
  const float* bias = optional<float>(task, slots, kBias);
  for (int64_t i = 0; i < h; ++i) s.bias[i] = bias ? bias[d * 2 * h + i] + bias[d * 2 * h + h + i] : 0.0f;
  const float* initial = optional<float>(task, slots, kInitialState);
  if (initial)
    std::copy_n(initial + d * n, n, s.state);
  else
    std::fill_n(s.state, n, 0.0f);
}

void run_direction(const Task& task, void* const* slots, const RnnTiling& t, int d, const Scratch& s) {
  const int64_t h = t.hidden;
  const bool is_backwards = d == 1 || t.is_reverse;
  const float* x = task.input<float>(slots, kX);
  const int32_t* lengths = optional<int32_t>(task, slots, kLengths);
  float* y = task.has_output(slots, 0) ? task.output<float>(slots, 0) : nullptr;
  const auto y_row = [&](int64_t time, int64_t b) { return y + ((time * t.directions + d) * t.batch + b) * h; };
  for (int64_t step = 0; step < t.steps; ++step) {
    const auto time_of = [&](int64_t b) {
      const int64_t length = lengths ? lengths[b] : t.steps;
      return step >= length ? int64_t{-1} : is_backwards ? length - 1 - step : step;
    };
    for (int64_t b = 0; b < t.batch; ++b) {
      const int64_t time = time_of(b);
      if (time < 0)
        std::fill_n(s.rows + b * t.in, t.in, 0.0f);
      else
        std::copy_n(x + (time * t.batch + b) * t.in, t.in, s.rows + b * t.in);
    }
    product_plus(t.batch, h, t.in, s.rows, s.w, s.bias, 0, s.sums);
    product_plus(t.batch, h, h, s.state, s.r, s.sums, h, s.next);
    for (int64_t b = 0; b < t.batch; ++b) {
      float* state = s.state + b * h;
      const int64_t time = time_of(b);
      if (time < 0) {
        if (y) std::fill_n(y_row(step, b), h, 0.0f);
        continue;
      }
      std::copy_n(s.next + b * h, h, state);
      if (t.clip > 0) vec_table().clip(state, state, static_cast<size_t>(h), -t.clip, t.clip);
      t.activation[d].apply(t.activation[d], state, static_cast<size_t>(h));
      if (y) std::copy_n(state, h, y_row(time, b));
    }
  }
}

Status launch_rnn(const Task& task, void* const* slots, Worker& worker) {
  const auto& t = *static_cast<const RnnTiling*>(task.tiling);
  const Status status = check_lengths(t.batch, t.steps, optional<int32_t>(task, slots, kLengths), worker);
  if (status != Status::kOk) return status;
  const Scratch s(t, static_cast<float*>(task.workspace(slots)));
  for (int d = 0; d < t.directions; ++d) {
    prepare(task, slots, t, d, s);
    run_direction(task, slots, t, d, s);
    const int64_t n = t.batch * t.hidden;
    if (task.has_output(slots, 1)) std::copy_n(s.state, n, task.output<float>(slots, 1) + d * n);
  }
  return Status::kOk;
}

std::shared_ptr<const Tiling> tile_rnn(const TilingContext& ctx) {
  constexpr const char* kDefaults[] = {"Tanh"};
  const Shape &x = ctx.input(kX), &r = ctx.input(kR);
  auto t = create_tiling<RnnTiling>(launch_rnn, "vector:cells");
  t->steps = x[0], t->batch = x[1], t->in = x[2], t->hidden = r[2];
  const std::string_view direction = ctx.attributes().get_string("direction", "forward");
  t->directions = direction == "bidirectional" ? 2 : 1;
  t->is_reverse = direction == "reverse";
  t->clip = static_cast<float>(ctx.attributes().get_float("clip", 0.0));
  for (int d = 0; d < t->directions; ++d) read_activations(ctx, kDefaults, 1, d, t->directions, &t->activation[d]);
  t->workspace_bytes = static_cast<size_t>(Scratch::elements(*t)) * sizeof(float);
  return t;
}

}  // namespace

void register_rnn(KernelRegistry& registry) {
  registry.add("RNN", DType::kFloat32, tile_rnn);
  registry.add("RNN", kHalfFloats, tile_half<tile_rnn, 0>);
}

}  // namespace asc::cpu
