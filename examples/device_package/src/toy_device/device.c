/* A device in host memory for ascendsched, with three kernels. Copy this file and change it. */
#include <Python.h>
#include <ascendsched/device.h>
#include <stdlib.h>
#include <string.h>

/* --- kernels ------------------------------------------------------------------------------------------------ */
static int64_t size_of(const asc_tensor* t) {
  int64_t n = 1;
  for (int i = 0; i < t->rank; ++i) n *= t->shape[i];
  return n;
}
static int relu(const void* tiling, const asc_tensor* in, int32_t ins, asc_tensor* out, int32_t outs, char* error) {
  const float* x = in->data;
  for (int64_t i = 0, n = size_of(in); i < n; ++i) ((float*)out->data)[i] = x[i] > 0 ? x[i] : 0;
  return ASC_OK;
}
static int tile_add(asc_context* context, const asc_tensor* in, int32_t ins, const asc_tensor* out, int32_t outs,
                    void** tiling) {
  for (int k = 0; k < 2; ++k)
    if (memcmp(in[k].shape, out->shape + out->rank - in[k].rank, sizeof(int64_t) * (size_t)in[k].rank))
      return context->fail(context, "only leading dimensions may be broadcast");
  return ASC_OK;
}
static int add(const void* tiling, const asc_tensor* in, int32_t ins, asc_tensor* out, int32_t outs, char* error) {
  const float *a = in[0].data, *b = in[1].data;
  const int64_t an = size_of(&in[0]), bn = size_of(&in[1]), n = size_of(out);
  for (int64_t i = 0; i < n; ++i) ((float*)out->data)[i] = a[i % an] + b[i % bn];
  return ASC_OK;
}
static int tile_matmul(asc_context* context, const asc_tensor* in, int32_t ins, const asc_tensor* out, int32_t outs,
                       void** tiling) {
  return in[0].rank == 2 && in[1].rank == 2 ? ASC_OK : context->fail(context, "only products of matrices");
}
static int matmul(const void* tiling, const asc_tensor* in, int32_t ins, asc_tensor* out, int32_t outs, char* error) {
  const int64_t m = in[0].shape[0], k = in[0].shape[1], n = in[1].shape[1];
  const float *a = in[0].data, *b = in[1].data;
  for (int64_t i = 0; i < m * n; ++i) {
    float sum = 0;
    for (int64_t l = 0; l < k; ++l) sum += a[i / n * k + l] * b[l * n + i % n];
    ((float*)out->data)[i] = sum;
  }
  return ASC_OK;
}
static const asc_kernel kernels[] = {{"Relu", ASC_TYPE_BIT(ASC_FLOAT32), 0, NULL, NULL, relu},
                                     {"Add", ASC_TYPE_BIT(ASC_FLOAT32), 0, tile_add, NULL, add},
                                     {"MatMul", ASC_TYPE_BIT(ASC_FLOAT32), 0, tile_matmul, NULL, matmul}};

/* --- streams: work is done at once, on the thread that appends it; a real device would queue it ----------------- */
typedef struct { const asc_task* tasks; size_t count; } chain_t;
static const asc_host* core;

static int create_stream(void* device, void** stream, char* error) { return *stream = device, ASC_OK; }
static void destroy_stream(void* stream) {}
static int launch(void* stream, const asc_task* task, void* const* table, asc_run run, char* error) {
  return core->run_task(run, task, table), ASC_OK; /* errors of kernels go to the run, not to the stream */
}
static int submit(void* stream, void* chain, void* const* table, asc_run run, char* error) {
  const chain_t* c = chain;
  for (size_t i = 0; i < c->count; ++i) core->run_task(run, &c->tasks[i], table);
  return ASC_OK;
}
static int copy(void* stream, void* to, const void* from, size_t bytes, asc_run run, char* error) {
  if (!core->is_stopped(run)) memcpy(to, from, bytes);
  return ASC_OK;
}
static int record(void* stream, asc_run run, char* error) { return core->complete(run), ASC_OK; }
static int synchronize(void* stream, char* error) { return ASC_OK; }

/* --- the device ---------------------------------------------------------------------------------------------- */
static int open_device(const asc_host* host, const asc_device_settings* settings, void** device, char* error) {
  core = host;
  return *device = (void*)kernels, ASC_OK; /* there is nothing to keep: any address will do */
}
static void close_device(void* device) {}
static int describe(void* device, asc_device_info* info, char* error) { return info->threads = 1, ASC_OK; }
static int allocate(void* device, size_t bytes, void** data, char* error) {
  return posix_memalign(data, ASC_MEMORY_ALIGNMENT, bytes) ? ASC_OUT_OF_MEMORY : ASC_OK;
}
static void release(void* device, void* data, size_t bytes) { free(data); }
static int load_chain(void* device, const asc_task* tasks, size_t count, void** chain, char* error) {
  chain_t* c = *chain = malloc(sizeof *c);
  if (c) *c = (chain_t){tasks, count};
  return c ? ASC_OK : ASC_OUT_OF_MEMORY;
}
static void unload_chain(void* device, void* chain) { free(chain); }
static const asc_device device = {
    ASC_DEVICE_VERSION, sizeof(asc_device), "toy", "host memory and three kernels", kernels, 3,
    sizeof(asc_kernel), open_device, close_device, describe, allocate, release, create_stream, destroy_stream, launch,
    submit, copy, record, synchronize, load_chain, unload_chain};

static PyObject* devices(PyObject* self, PyObject* none) {
  return Py_BuildValue("[N]", PyCapsule_New((void*)&device, ASC_DEVICE_CAPSULE, NULL));
}
static PyMethodDef methods[] = {{"devices", devices, METH_NOARGS, "The capsules of this package's devices."}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "device", NULL, 0, methods};
PyMODINIT_FUNC PyInit_device(void) { return PyModule_Create(&module); }
