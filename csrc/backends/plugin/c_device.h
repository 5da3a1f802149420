// Devices in C, version 1, for C and C++. Experimental: it may change until a real accelerator uses it.
//
// A package fills one asc_device, puts it into a capsule named ASC_DEVICE_CAPSULE, and returns the capsule from a
// function that it announces under the entry point group "ascendsched.devices", by the device's name. The struct and
// what it points to must live as long as the process.
//
// What the core expects
// - Functions return 0, or an ASC_ status and a text of at most ASC_ERROR_BYTES in `error`. None of them throws, and
// none
//   of them is called with Python's lock.
// - Memory can be addressed by the host: kernels read inputs and constants, and write results, where the caller has
//   them. A device with memory of its own has to stage them; this version has no help for that.
// - A stream runs what is appended to it in order. Appending may block while a queue is full; it need not wait for the
//   work. One thread at a time appends to a stream; several streams, of one or of several open devices, are used at the
//   same time.
// - `tasks` and `table` are read when the work runs: a task's own bytes only during the call (copy them), what it
// points
//   to, a chain and a table until the run is completed.
// - A run that failed or was cancelled skips what has not begun; asc_host::run_task does so by itself.
// - asc_host::complete is called once for each asc_device::record, with the run given there, when everything appended
//   before has ended. It may be called by any thread, also inside record.
// - Identity is the core's where a device has no kernel for it: its tasks are run like others.
//
// What the core checks: versions, missing functions, statuses, exceptions, handles, alignment and overlap of memory,
// completions that come twice or not at all within asc_device_info::deadline_ms, ranks and extents. What it finds is an
// error that names the device and the function; other devices go on.
#pragma once

#include <ascendsched/operator.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ASC_DEVICE_VERSION 1
#define ASC_DEVICE_CAPSULE "ascendsched.device"
#define ASC_MEMORY_ALIGNMENT 64

/* What functions return. */
enum {
  ASC_OK = 0,
  ASC_FAILED = 1,
  ASC_OUT_OF_MEMORY = 2,
  ASC_INVALID_INPUT = 3, /* kernels: the data is refused, for example an index out of range */
  ASC_UNAVAILABLE = 4    /* open: there is no such device here */
};

/* The bit of an element type in asc_kernel::types. */
#define ASC_TYPE_BIT(type) (UINT32_C(1) << (type))

/* How one operator is computed for some element types. Operators have the newest ONNX semantics and ONNX names. */
typedef struct asc_kernel {
  const char* op;     /* "Add" */
  uint32_t types;     /* ASC_TYPE_BIT(ASC_FLOAT32) | ... of the input `type_input` */
  int32_t type_input; /* mostly 0 */
  /* Optional: thinks about one set of shapes, as in asc_operator. Inputs that shapes depend on have data. What it
     stores in *tiling is shared by all open devices of this name. To refuse: return context->fail(context, "why"). */
  int (*tiling)(asc_context* context, const asc_tensor* inputs, int32_t input_count, const asc_tensor* outputs,
                int32_t output_count, void** tiling);
  void (*free_tiling)(void* tiling);
  /* Computes on the calling thread. Outputs never overlap inputs; absent ones have no data. Operators whose shapes
     depend on data get upper bounds, and put the real dimensions into outputs[i].shape. */
  int (*launch)(const void* tiling, const asc_tensor* inputs, int32_t input_count, asc_tensor* outputs,
                int32_t output_count, char* error);
} asc_kernel;

/* One launch of a kernel. */
typedef struct asc_task {
  const asc_kernel* kernel;
  const void* tiling;
  const asc_tensor* operands; /* inputs, then outputs, without data */
  const uint32_t* slots;      /* of each operand: its data is table[slots[i]] */
  int32_t input_count;
  int32_t output_count;
  uint32_t extent_slot; /* not 0: the real dimensions go to (int64_t*)table[extent_slot], ASC_MAX_RANK per output */
  uint32_t node;        /* for messages of the core */
} asc_task;

/* Names a run to the core: copied as it is. */
typedef struct asc_run {
  uint64_t number;
  uint64_t entry;
} asc_run;

/* What the core does for devices. Any thread may call these; they never block for long, and never call the device. */
typedef struct asc_host {
  uint32_t version; /* of the core: ASC_DEVICE_VERSION */
  uint32_t size;
  /* Runs a task on the calling thread, unless its run is stopped: calls its kernel's launch, keeps its error, and its
     time while a profile is recorded. All tasks of a stream run on one thread at a time. */
  void (*run_task)(asc_run run, const asc_task* task, void* const* table);
  /* For devices that run tasks in another way. Whether the run failed or was cancelled; why a task failed, or, where
     task is NULL, something else. */
  int (*is_stopped)(asc_run run);
  void (*fail)(asc_run run, const asc_task* task, int status, const char* why);
  /* Everything appended before record(run) has ended. */
  void (*complete)(asc_run run);
} asc_host;

/* What `compile` was asked for. */
typedef struct asc_device_settings {
  uint32_t size;
  int32_t threads;
  uint64_t memory_limit_bytes; /* 0: none; the core sees to it */
  const char* options;         /* of "name:options"; "" where there are none. Valid during open. */
} asc_device_settings;

typedef struct asc_device_info {
  uint32_t size;
  int32_t threads;             /* that kernels use; as asked for unless changed */
  int32_t computes;            /* 1; 0: results mean nothing, as on a device that only imitates one */
  uint64_t memory_limit_bytes; /* of the device; 0: none */
  int64_t deadline_ms; /* a stream on which nothing ends for so long counts as lost: 60000, or what is set here */
} asc_device_info;

typedef struct asc_device {
  uint32_t version; /* ASC_DEVICE_VERSION */
  uint32_t size;    /* sizeof(asc_device) */
  const char* name; /* lower-case letters, digits, '-' and '_' */
  const char* description;
  const asc_kernel* kernels;
  uint32_t kernel_count;
  uint32_t kernel_size; /* sizeof(asc_kernel) */

  /* A device may be open several times. `host` lives as long as the process. */
  int (*open)(const asc_host* host, const asc_device_settings* settings, void** device, char* error);
  void (*close)(void* device);
  int (*describe)(void* device, asc_device_info* info, char* error); /* info holds what is usual */

  /* `bytes` is not 0; memory is aligned to ASC_MEMORY_ALIGNMENT. Any thread. */
  int (*allocate)(void* device, size_t bytes, void** data, char* error);
  void (*release)(void* device, void* data, size_t bytes);

  int (*create_stream)(void* device, void** stream, char* error);
  void (*destroy_stream)(void* stream); /* everything appended has been completed */
  int (*launch)(void* stream, const asc_task* task, void* const* table, asc_run run, char* error);
  int (*submit)(void* stream, void* chain, void* const* table, asc_run run, char* error);
  int (*copy)(void* stream, void* to, const void* from, size_t bytes, asc_run run, char* error);
  int (*record)(void* stream, asc_run run, char* error);
  int (*synchronize)(void* stream, char* error); /* returns when nothing runs: after a record that failed */

  /* Makes tasks resident, to be submitted as one. The array lives until unload_chain. */
  int (*load_chain)(void* device, const asc_task* tasks, size_t count, void** chain, char* error);
  void (*unload_chain)(void* device, void* chain);
} asc_device;

#ifdef __cplusplus
}
#endif
