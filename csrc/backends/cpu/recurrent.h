// What the kernels of LSTM, GRU and RNN share: extents, the order in which a direction sees its sequences, the weights
// of a step, and the parts of a launch's workspace.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/parallel.h"
#include "backends/cpu/tiling_base.h"

namespace asc::cpu {

// Operands that all of them have.
enum RecurrentInput { kX, kW, kR, kBias, kLengths, kInitialState };

struct Recurrence {
  int64_t steps = 0, batch = 0, in = 0, hidden = 0;
  int directions = 1;
  bool is_reverse = false;  // of direction 0; direction 1 is always reverse
  int64_t chunk = 1;        // steps whose input part is computed at once
  int threads = 1;          // for the directions

  bool runs_backwards(int d) const { return d == 1 || is_reverse; }
  bool reorders() const { return is_reverse || directions == 2; }
  // Directions that run side by side, each with workspace of its own.
  int scratches() const { return threads > 1 ? directions : 1; }
};

// Calls f(direction, number of its workspace).
template <typename F>
void for_each_direction(const Recurrence& r, F f) {
  parallel_for(r.threads, r.directions, [&](int64_t d) { f(static_cast<int>(d), r.scratches() > 1 ? d : 0); });
}

// From X (input 0) and the direction; `gates`: that the input has a part in.
Recurrence read_recurrence(const TilingContext& ctx, int64_t hidden, int gates);

template <typename T>
const T* optional_input(const Task& task, void* const* slots, int i) {
  return task.has_input(slots, i) ? task.input<T>(slots, i) : nullptr;
}

// Ends a tiling: both weights are constants, packed for all directions. `kind` tells the operators apart, `layout` the
// ways to pack.
void pack_weights_once(Tiling& t, const Recurrence& r, uint64_t kind, int64_t weight_elements, uint64_t layout,
                       void (*pack)(const Tiling&, const void* const*, void*));

// Weights in float32. T: a tiling with recurrence(), and for a direction weight_elements() and pack_direction(d, w, r,
// to).
template <typename T>
void pack_directions(const Tiling& tiling, const void* const* inputs, void* packed) {
  const auto& t = static_cast<const T&>(tiling);
  for (int d = 0; d < t.recurrence().directions; ++d)
    t.pack_direction(d, static_cast<const float*>(inputs[kW]), static_cast<const float*>(inputs[kR]),
                     static_cast<float*>(packed) + d * t.weight_elements());
}
// Those of direction d in a launch: packed once, or now, into `own`.
template <typename T>
const float* weights_of(const T& t, const Task& task, void* const* slots, int d, float* own) {
  if (t.packed_bytes > 0) return static_cast<const float*>(task.packed(slots)) + d * t.weight_elements();
  t.pack_direction(d, task.input<float>(slots, kW), task.input<float>(slots, kR), own);
  return own;
}

// Whether all lengths (null: none are given) lie in [0, steps].
Status check_lengths(const Recurrence& r, const int32_t* lengths, Worker& worker);

// The steps of the longest sequence; `lengths` null: all.
inline int64_t longest_of(const Recurrence& r, const int32_t* lengths) {
  return lengths && r.batch > 0 ? *std::max_element(lengths, lengths + r.batch) : r.steps;
}

// Cuts memory into 64-byte aligned parts. Without memory it only counts.
class Cutter {
 public:
  explicit Cutter(void* base) : base_(static_cast<char*>(base)) {}
  template <typename T>
  T* take(int64_t elements) {
    char* part = base_ ? base_ + used_ : nullptr;
    used_ += round_up(static_cast<size_t>(elements) * sizeof(T));
    return reinterpret_cast<T*>(part);
  }
  size_t used() const { return used_; }

 private:
  char* base_;
  size_t used_ = 0;
};

// Ends a tiling: each direction that runs beside another cuts a Scratch from a part of the workspace.
template <typename Scratch, typename T>
void size_workspace(T& t, bool needs_weights) {
  Cutter cutter(nullptr);
  const Scratch scratch(t, needs_weights, cutter);
  t.scratch_bytes = cutter.used();
  t.workspace_bytes = static_cast<size_t>(t.recurrence().scratches()) * t.scratch_bytes;
}

bool are_zero(const float* x, int64_t n);
bool are_finite(const float* x, int64_t n);

// Weights of one product, stored (n, k), laid out for products of `m` rows or about as many. Packed, they end with
// whether all of them are finite: the first state is often zero, and adds nothing then.
class StepWeights {
 public:
  StepWeights() = default;
  StepWeights(int64_t m, int64_t n, int64_t k);
  int64_t elements() const { return n_ * k_; }
  int64_t packed_elements() const { return n_ * k_ + kEndElements; }
  uint64_t layout() const { return in_panels_; }
  void pack(const float* from, float* to) const;
  // c[m, n] = a[m, k]·weights + add, where add (null: none) has rows `add_row` apart (0: one row for all).
  // `backwards`: from the last weights to the first. Steps that go to and fro find the weights that they begin with in
  // the first-level cache.
  void multiply(int64_t m, const float* a, const float* packed, const float* add, int64_t add_row, float* c,
                bool backwards = false) const;

 private:
  static constexpr int64_t kEndElements = 16;

  int64_t n_ = 0, k_ = 0;
  bool in_panels_ = false;
};

// The sequences of one launch as direction `d` sees them. X: elements of the input.
template <typename X>
class Sequences {
 public:
  // `rows` holds a chunk's rows where they are reordered; `y` is null where it is not wanted.
  Sequences(const Recurrence& r, int d, const X* x, const int32_t* lengths, X* rows, float* y)
      : r_(r), d_(d), x_(x), lengths_(lengths), rows_(rows), y_(y) {}

  int64_t longest() const { return longest_of(r_, lengths_); }

  // The time that row b of the batch sees at a step; negative once its sequence has ended.
  int64_t time_of(int64_t step, int64_t b) const {
    if (step >= length(b)) return -1;
    return r_.runs_backwards(d_) ? length(b) - 1 - step : step;
  }

  // The rows of x that steps [begin, begin + steps) see, in their order.
  const X* rows_of(int64_t begin, int64_t steps) const {
    if (!r_.runs_backwards(d_)) return x_ + begin * r_.batch * r_.in;
    for (int64_t i = 0; i < steps * r_.batch; ++i) {
      const int64_t b = i % r_.batch, time = time_of(begin + i / r_.batch, b);
      X* row = rows_ + i * r_.in;
      if (time < 0)
        std::fill_n(row, r_.in, X{});
      else
        std::copy_n(x_ + (time * r_.batch + b) * r_.in, r_.in, row);
    }
    return rows_;
  }

  bool has_y() const { return y_ != nullptr; }
  float* y_row(int64_t time, int64_t b) const { return y_ + ((time * r_.directions + d_) * r_.batch + b) * r_.hidden; }
  void write(int64_t time, int64_t b, const float* state) const {
    if (y_) std::copy_n(state, r_.hidden, y_row(time, b));
  }

  void clear_after_ends() const {
    for (int64_t b = 0; y_ && b < r_.batch; ++b)
      for (int64_t time = length(b); time < r_.steps; ++time) std::fill_n(y_row(time, b), r_.hidden, 0.0f);
  }

 private:
  int64_t length(int64_t b) const { return lengths_ ? lengths_[b] : r_.steps; }

  const Recurrence& r_;
  const int d_;
  const X* x_;
  const int32_t* lengths_;  // null: all steps
  X* rows_;
  float* y_;
};

// `values` (null: zeros) of direction d, as the first state.
void load_state(const Recurrence& r, int d, const float* values, float* state);
// Writes the last state of direction d.
void store_state(const Recurrence& r, int d, const float* state, float* to);

}  // namespace asc::cpu
