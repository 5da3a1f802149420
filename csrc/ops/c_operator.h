// Operators in C, version 1, for C and C++. Experimental: it may change until a second device uses it.
//
// A package fills an asc_operator for each of its operators, puts it into a capsule named ASC_OPERATOR_CAPSULE, and
// returns the capsules from a function that it announces under the entry point group "ascendsched.ops", by the name of
// its domain. The struct and what it points to must live as long as the process.
//
// Functions return 0, or another number after asc_context::fail or, in launch, a text in `error`. They must not throw,
// and may be called by any thread, also at the same time; none of them holds Python's lock.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ASC_OPERATOR_VERSION 1
#define ASC_OPERATOR_CAPSULE "ascendsched.operator"
#define ASC_MAX_RANK 8
#define ASC_MAX_OPERANDS 16 /* inputs and outputs of an operator, together */
#define ASC_ERROR_BYTES 256

/* Element types, numbered as in ONNX. */
enum {
  ASC_FLOAT32 = 1,
  ASC_UINT8 = 2,
  ASC_INT8 = 3,
  ASC_UINT16 = 4,
  ASC_INT16 = 5,
  ASC_INT32 = 6,
  ASC_INT64 = 7,
  ASC_BOOL = 9,
  ASC_FLOAT16 = 10,
  ASC_FLOAT64 = 11,
  ASC_UINT32 = 12,
  ASC_UINT64 = 13,
  ASC_BFLOAT16 = 16
};

/* A C-contiguous tensor. data is NULL where only shapes are known, and for optional inputs that are absent (type 0). */
typedef struct asc_tensor {
  void* data;
  int32_t type;
  int32_t rank;
  int64_t shape[ASC_MAX_RANK];
} asc_tensor;

/* A node while its shapes or its tiling are made. */
typedef struct asc_context asc_context;
struct asc_context {
  const void* node;
  int64_t (*attribute_int)(const asc_context* context, const char* name, int64_t fallback);
  double (*attribute_float)(const asc_context* context, const char* name, double fallback);
  /* Notes why the node is refused, and returns 1: `return context->fail(context, "rank 2 expected");` */
  int (*fail)(asc_context* context, const char* why);
  char error[ASC_ERROR_BYTES];
  /* The number of values, of which at most `capacity` are written; 0 where the node has none. */
  int32_t (*attribute_ints)(const asc_context* context, const char* name, int64_t* values, int32_t capacity);
  const char* (*attribute_text)(const asc_context* context, const char* name, const char* fallback);
};

typedef struct asc_operator {
  uint32_t version;   /* ASC_OPERATOR_VERSION */
  uint32_t size;      /* sizeof(asc_operator) */
  const char* name;   /* "my::gelu" */
  int32_t min_inputs; /* 1 or more */
  int32_t max_inputs;
  int32_t outputs; /* 1 or more */
  /* Optional: the element type of an output; without it, that of input 0. 0: refused. */
  int32_t (*infer_type)(const int32_t* input_types, int32_t input_count, int32_t output);
  /* Fills rank and shape of every output; its type is there. */
  int (*infer_shape)(asc_context* context, const asc_tensor* inputs, int32_t input_count, asc_tensor* outputs);
  /* Optional: thinks about one set of shapes. What it stores in *tiling is passed to launch, and to free_tiling at the
     end; it is used for all nodes with these shapes, types and attributes. */
  int (*tiling)(asc_context* context, const asc_tensor* inputs, int32_t input_count, const asc_tensor* outputs,
                void** tiling);
  void (*free_tiling)(void* tiling);
  /* Computes. Outputs never overlap inputs. `error` has ASC_ERROR_BYTES bytes. */
  int (*launch)(const void* tiling, const asc_tensor* inputs, int32_t input_count, const asc_tensor* outputs,
                char* error);
} asc_operator;

#ifdef __cplusplus
}
#endif
