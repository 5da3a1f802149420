// Steps of an LSTM on bytes for AVX512-VNNI, whose 32 registers hold both products. One row waits for its weights and
// leaves half of the multipliers idle; rows that share weights wait for the multipliers. In one loop, both are busy.
#if defined(__x86_64__) && !defined(__clang__)
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backends/cpu/byte_lstm.h"

// As in vec_v4.cc: after every standard header, up to the end of the file.
#pragma GCC target("arch=x86-64-v4,avx512vnni,prefer-vector-width=512")

#define ASC_VEC_LEVEL 4
#define ASC_VEC_BYTES 64
#define ASC_BYTE_LANES 16
#define ASC_BYTE_VECS 4
#define ASC_BYTE_DOT(sums, a, b) _mm512_dpbusd_epi32((__m512i)(sums), (__m512i)(a), (__m512i)(b))

namespace asc::cpu::byte_lstm_v4 {

#include "backends/cpu/vec_math.inc"
// Behind the functions that it uses.
#include "backends/cpu/byte_gemm.inc"
#include "backends/cpu/vec_gates.inc"

constexpr int kGates = 4;
constexpr int kTileVecs = 2;  // vectors of columns that a product beside a step has sums of

template <int kRows>
using TileSums = Ints[kRows][kTileVecs];

// Stores the result's columns from `column` on, as ToScaled and correct() do, for rows that share zero point and
// addend.
template <int kRows>
__attribute__((noinline)) void store_tile(const ByteGemmArgs& p, int64_t column, const TileSums<kRows>& sums) {
  const bool has_zeros = p.b.has_zeros();
#pragma GCC unroll 2
  for (int j = 0; j < kTileVecs; ++j) {
    const int64_t at = column + j * ASC_BYTE_LANES;
    const Words correction = static_cast<uint32_t>(*p.a_zeros) * load<Words>(p.b.sums + at);
    const Floats scale = p.a_scale * load<Floats>(p.scales + at), add = load<Floats>(p.add + at);
    float* y = p.y + at;
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i, y += p.b.n) {
      Words sum = (Words)sums[i][j] - correction;
      if (has_zeros) sum -= static_cast<uint32_t>(p.row_sums[i]) * load<Words>(p.b.column_zeros() + at);
      store(y, __builtin_convertvector((Ints)sum, Floats) * scale + add);
    }
  }
}

// Columns of a product of kRows rows, whose sums stay in registers. A turn takes four rows of its weights.
template <int kRows>
class Tile {
 public:
  ASC_METHOD explicit Tile(ByteLstmBeside& s)
      : s_(s), p_(s.product), turns_(p_.b.k / ByteMatrix::kRowUnit), k_(p_.b.k) {
    ahead_ = s.ahead ? s.ahead : reinterpret_cast<const char*>(p_.b.bytes);
    last_ahead_ = s.ahead ? s.ahead_end - kLines * kLineBytes : ahead_;
    begin();
  }
  ASC_METHOD int64_t left() const { return left_; }  // turns of this tile; 0: all tiles are done
  ASC_METHOD bool is_begun() const { return left_ != turns_; }
  ASC_METHOD void turn() {
#pragma GCC unroll 2
    for (int i = 0; i < kLines; ++i) __builtin_prefetch(ahead_ + i * kLineBytes, 0, 2);
    ahead_ = ahead_ < last_ahead_ ? ahead_ + kLines * kLineBytes : ahead_;
    Right right[kTileVecs];
#pragma GCC unroll 2
    for (int j = 0; j < kTileVecs; ++j) right[j] = make_right(load<Ints>(b_ + j * ASC_BYTE_LANES * 4));
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
      const Left left = make_left(load<uint32_t>(a_[i / kNear] + i % kNear * k_), 0);
#pragma GCC unroll 2
      for (int j = 0; j < kTileVecs; ++j) sums_[i][j] = add_products(sums_[i][j], left, right[j]);
    }
#pragma GCC unroll 4
    for (const uint8_t*& a : a_) {
      a += ByteMatrix::kRowUnit;
      asm("" : "+r"(a));  // a register of its own, no sum of others
    }
    b_ += ByteMatrix::kPanelColumns * ByteMatrix::kRowUnit;
  }
  // After so many turns, left() or fewer.
  ASC_METHOD void advance(int64_t turns) { left_ -= turns; }
  // Ends the tile where fewer than `few` turns are left, and begins the next.
  ASC_METHOD void end(int64_t few) {
    if (left_ >= few || p_.column_begin >= p_.b.n) return;
    for (; left_ > 0; --left_) turn();
    TileSums<kRows> done;  // a copy: the sums themselves stay in registers
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int j = 0; j < kTileVecs; ++j) done[i][j] = sums_[i][j];
    }
    store_tile<kRows>(p_, p_.column_begin, done);
    p_.column_begin += kTileVecs * ASC_BYTE_LANES;
    begin();
  }
  ASC_METHOD void leave() {
    if (s_.ahead) s_.ahead = ahead_;
  }

 private:
  static constexpr int kLines = 1, kLineBytes = 64;  // fetched ahead in a turn
  // One pointer reaches so many rows by addresses that cost no instruction.
  static constexpr int kNear = 3, kPointers = (kRows + kNear - 1) / kNear;

  ASC_METHOD void begin() {
    const int64_t in_panel = p_.column_begin % ByteMatrix::kPanelColumns;
    left_ = p_.column_begin < p_.b.n ? turns_ : 0;
#pragma GCC unroll 4
    for (int i = 0; i < kPointers; ++i) a_[i] = p_.a + kNear * i * k_;
    b_ = p_.b.bytes + (p_.column_begin - in_panel) * k_ + in_panel * ByteMatrix::kRowUnit;
#pragma GCC unroll 12
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int j = 0; j < kTileVecs; ++j) sums_[i][j] = Ints{};
    }
  }

  ByteLstmBeside& s_;
  ByteGemmArgs& p_;
  const int64_t turns_, k_;
  int64_t left_;
  const char *ahead_, *last_ahead_;
  const uint8_t* a_[kPointers];
  const int8_t* b_;
  TileSums<kRows> sums_;
};

// No rows beside a step.
template <>
class Tile<0> {
 public:
  explicit Tile(ByteLstmBeside&) {}
  static int64_t left() { return 0; }
  static bool is_begun() { return false; }
  static void turn() {}
  static void advance(int64_t) {}
  static void end(int64_t) {}
  static void leave() {}
};

// The cells of 16 units, in parts for between the turns of the panel after theirs. All at once, and right after their
// sums, they would wait for those, fill the CPU's queue of instructions and keep the next panel's loads out of it.
class Cells {
 public:
  static constexpr int64_t kParts = LstmUnits::kParts + 1;
  ASC_METHOD explicit Cells(const ByteLstmStep& s) : s_(s) {}
  ASC_METHOD void begin(int64_t panel, const Ints (&sums)[kGates]) {
    panel_ = panel;
#pragma GCC unroll 4
    for (int j = 0; j < kGates; ++j) sums_[j] = sums[j];
  }
  // All parts, in their order.
  ASC_METHOD void run(int64_t part) {
    if (panel_ < 0) return;
    float *cell = s_.cell + panel_ * ByteLstm::kUnits, *state = s_.state + panel_ * ByteLstm::kUnits;
    if (part == 0)
      units_ = {gate(0), gate(1), gate(2), gate(3), load(cell), F32{}};
    else
      units_.run(static_cast<int>(part - 1));
    if (part == kParts - 1) store(cell, units_.cell), store(state, units_.state);
  }

 private:
  ASC_METHOD F32 gate(int j) const {
    const ByteGemmArgs& p = s_.product;
    const int64_t at = panel_ * ByteMatrix::kPanelColumns + j * ASC_BYTE_LANES;
    return scale_and_add(p, at, correct(p, 0, at, sums_[j]), load(p.add + at));
  }

  const ByteLstmStep& s_;
  int64_t panel_ = -1;
  Ints sums_[kGates] = {};
  LstmUnits units_ = {};
};

template <int kRows>
__attribute__((noinline)) void step(const ByteLstmStep& s, ByteLstmBeside& beside) {
  const ByteGemmArgs& p = s.product;
  const int64_t groups = p.b.k / ByteMatrix::kRowUnit, panels = p.b.n / ByteMatrix::kPanelColumns;
  constexpr int64_t kGroups = 2;                           // of four rows of a panel, in a turn
  const int64_t turns = groups / kGroups / Cells::kParts;  // before each part of the cells
  Tile<kRows> tile(beside);
  Cells cells(s);
  for (int64_t i = 0; i < panels; ++i) {
    const int64_t panel = p.backwards ? panels - 1 - i : i;
    const int8_t* b = p.b.bytes + panel * ByteMatrix::kPanelColumns * p.b.k;
    const uint8_t* a = p.a;
    Ints sums[kGates] = {};
    const auto add_group = [&]() __attribute__((always_inline)) {
      const Left left = make_left(load<uint32_t>(a), 0);
#pragma GCC unroll 4
      for (int j = 0; j < kGates; ++j)
        sums[j] = add_products(sums[j], left, make_right(load<Ints>(b + j * ASC_BYTE_LANES * 4)));
      a += ByteMatrix::kRowUnit;
      b += ByteMatrix::kPanelColumns * ByteMatrix::kRowUnit;
    };
#pragma GCC unroll 8
    for (int64_t part = 0; part < Cells::kParts; ++part) {
      if (tile.left() >= turns) {
        for (int64_t t = turns; t > 0; --t) {
          add_group();
          tile.turn();
          add_group();
        }
        tile.advance(turns);
      } else {
        for (int64_t t = turns; t > 0; --t) add_group(), add_group();
      }
      cells.run(part);
    }
    for (int64_t g = groups - turns * Cells::kParts * kGroups; g > 0; --g) add_group();
    cells.begin(panel, sums);
    tile.end(turns);
  }
#pragma GCC unroll 8
  for (int64_t part = 0; part < Cells::kParts; ++part) cells.run(part);
  if (tile.is_begun()) tile.end(INT64_MAX);
  tile.leave();
}

template <int kRows>
__attribute__((noinline)) void finish(ByteLstmBeside& beside) {
  Tile<kRows> tile(beside);
  while (tile.left() > 0) tile.end(INT64_MAX);
}

constexpr int64_t kFewestRows = 4;

void step_beside(const ByteLstmStep& s, ByteLstmBeside& beside) {
  static constexpr void (*kKernels[])(const ByteLstmStep&, ByteLstmBeside&) = {
      step<4>, step<5>, step<6>, step<7>, step<8>, step<9>, step<10>, step<11>, step<12>};
  static_assert(sizeof kKernels / sizeof *kKernels == ByteLstm::kRows - kFewestRows + 1);
  const int64_t rows = beside.product.m;
  rows < kFewestRows ? step<0>(s, beside) : kKernels[rows - kFewestRows](s, beside);
}

void finish_beside(ByteLstmBeside& beside) {
  static constexpr void (*kKernels[])(ByteLstmBeside&) = {finish<4>, finish<5>,  finish<6>,  finish<7>, finish<8>,
                                                          finish<9>, finish<10>, finish<11>, finish<12>};
  const int64_t rows = beside.product.m;
  rows < kFewestRows ? byte_gemm().scaled(beside.product) : kKernels[rows - kFewestRows](beside);
}

extern const ByteLstm kByteLstm;
constexpr ByteLstm kByteLstm = {step_beside, finish_beside};

}  // namespace asc::cpu::byte_lstm_v4
#endif
