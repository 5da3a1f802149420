// Float32 primitives, compiled once per instruction set. Fetch function pointers at tiling time, call them at launch.
//
// Contract of every function: pure, no allocation, any alignment, n may be 0. An output may be the very same array as
// an input, but must not overlap it in any other way. Results depend on the values and on n only: not on alignment, on
// the position inside the array (element-wise functions), or on the thread. They may differ between instruction sets.
// NaN propagates unless noted; denormals are kept.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/isa.h"

namespace asc {

struct VecTable {
  using Unary = void (*)(const float* x, float* y, size_t n);
  using ParamUnary = void (*)(const float* x, float* y, size_t n, float p, float q);
  using Predicate = void (*)(const float* x, uint8_t* y, size_t n);
  using Binary = void (*)(const float* a, const float* b, float* y, size_t n);
  using Compare = void (*)(const float* a, const float* b, uint8_t* y, size_t n);
  using Reduce = float (*)(const float* x, size_t n);
  using Reduce2 = float (*)(const float* a, const float* b, size_t n);
  using ReduceParam = float (*)(const float* x, size_t n, float p);
  using Select = void (*)(const uint8_t* condition, const uint32_t* a, const uint32_t* b, uint32_t* y, size_t n);

  // One operator for vector op vector, *a op vector, vector op *b: a scalar operand is read through its pointer.
  struct BinaryRows {
    Binary vv, sv, vs;
  };
  struct CompareRows {
    Compare vv, sv, vs;
  };

  // --- element-wise --------------------------------------------------------------------------------------------
  Unary abs, neg, sqrt, reciprocal, floor, ceil, round, sign, relu;  // round: half to even; sign of NaN is NaN
  Unary exp, log, sin, cos, tanh, sigmoid, erf, gelu;                // within 4 ulp; gelu and mish within 6
  Unary gelu_tanh;                                                   // to 2^-23 of x
  Unary softplus, softsign, mish, hard_swish;
  ParamUnary leaky_relu;        // p: slope below zero
  ParamUnary elu;               // p: alpha
  ParamUnary selu;              // p: alpha, q: gamma
  ParamUnary celu;              // p: alpha
  ParamUnary thresholded_relu;  // p: alpha
  ParamUnary hard_sigmoid;      // p: alpha, q: beta
  ParamUnary swish;             // x * sigmoid(p * x); 0 where exp(-p * x) is infinite
  ParamUnary clip;              // max(p), then min(q); NaN stays
  ParamUnary scale_shift;       // x * p + q
  Predicate is_nan;

  BinaryRows add, sub, mul, div, max, min;  // max and min: NaN wins, as in NumPy
  BinaryRows prelu;                         // a < 0 ? a * b : a
  CompareRows equal, less, less_equal, greater, greater_equal;
  Select select_vv, select_sv, select_vs, select_ss;  // any 4-byte type: condition ? a : b

  // y = a * b + c
  void (*mul_add)(const float* a, const float* b, const float* c, float* y, size_t n);
  // y += factor * x
  void (*axpy)(float factor, const float* x, float* y, size_t n);

  // --- reductions of one contiguous row ------------------------------------------------------------------------
  Reduce sum, sum_abs, sum_squares, prod;                                      // empty: 0, 0, 0, 1
  Reduce max_of, min_of;                                                       // NaN wins; empty: -inf, +inf
  void (*range_with_zero)(const float* x, size_t n, float* low, float* high);  // of x and 0; NaN wins
  Reduce2 dot;
  ReduceParam sum_exp;               // sum of exp(x - p)
  ReduceParam sum_squared_distance;  // sum of (x - p)^2

  // --- rows ----------------------------------------------------------------------------------------------------
  // `rows` rows of n elements each, one behind the other.
  using Rows = void (*)(const float* x, float* y, size_t rows, size_t n);
  Rows softmax_rows, log_softmax_rows;
  // y = (x - mean) / sqrt(variance + epsilon) * scale + bias; scale and bias may be null.
  void (*layer_norm_rows)(const float* x, const float* scale, const float* bias, float* y, size_t rows, size_t n,
                          float epsilon);
  // y = x / sqrt(mean(x^2) + epsilon) * scale; scale may be null.
  void (*rms_norm_rows)(const float* x, const float* scale, float* y, size_t rows, size_t n, float epsilon);

  // --- cells of recurrent networks, with sigmoid and tanh ------------------------------------------------------
  // `cell` is updated, `state` written. The gates of n units, in the order of ONNX: each gate of `side` units, which
  // divides n, before the next gate, and all of them before the next units.
  void (*lstm_cells)(const float* gates, float* cell, float* state, size_t n, size_t side);
  // Update and reset gate are sums + part, the candidate is part + reset * (sums + bias); `state` is updated.
  void (*gru_cells)(const float* sums, const float* part, const float* bias, float* state, size_t n);

  // --- bytes ---------------------------------------------------------------------------------------------------
  using BinaryBytes = void (*)(const uint8_t* a, const uint8_t* b, uint8_t* y, size_t n);
  BinaryBytes max_bytes, max_signed_bytes;
  void (*add_bytes)(const uint8_t* x, uint8_t flip, int32_t* sums, size_t n);  // sums += x ^ flip

  // Column by column, the sum of bytes times weights: row k of the weights has n elements and lies behind row k - 1.
  struct Taps {
    const uint8_t* const* rows;
    size_t count;
    uint8_t flip;  // of the bytes
    const int16_t* weights;
    const int32_t* start;  // what the sums begin with
    const float *scales, *add;
  };
  void (*scale_taps)(const Taps& taps, float* y, size_t n);  // y = sums * scales + add

  // --- conversions, rounding to nearest even -------------------------------------------------------------------
  // y = the low bytes of x / scale, rounded, plus zero, within [low, low + 255]; NaN gives low. Whole zero and low.
  void (*quantize_bytes)(const float* x, uint8_t* y, size_t n, float scale, float zero, float low);
  // Signed bytes are read as x ^ 128, those of a `flip` of 0 as they are; the zero point is of what is read.
  void (*dequantize_bytes)(const uint8_t* x, uint8_t flip, float* y, size_t n, float scale, int32_t zero);
  void (*float16_to_float32)(const uint16_t* x, float* y, size_t n);
  void (*float32_to_float16)(const float* x, uint16_t* y, size_t n);
  void (*bfloat16_to_float32)(const uint16_t* x, float* y, size_t n);
  void (*float32_to_bfloat16)(const float* x, uint16_t* y, size_t n);
};

// The table of current_isa().
const VecTable& vec_table();

// The table of one set, for tests; null where it was not compiled (off x86-64 only kBase is).
const VecTable* vec_table_of(Isa isa);

}  // namespace asc
