# exp(-sharpness * x * x), as an operator of ascendsched. No function here holds Python's lock while a model runs.
from cpython.pycapsule cimport PyCapsule_New
from libc.math cimport expf
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from ascendsched_operator cimport (
    ASC_FLOAT32,
    ASC_OPERATOR_CAPSULE,
    ASC_OPERATOR_VERSION,
    asc_context,
    asc_operator,
    asc_tensor,
)


ctypedef struct Tiling:  # what is known once the shapes are
    int64_t count
    float sharpness


cdef int infer_shape(
    asc_context* context, const asc_tensor* inputs, int32_t input_count, asc_tensor* outputs
) noexcept nogil:
    if inputs[0].type != ASC_FLOAT32:
        return context.fail(context, b"x is no float32 tensor")
    outputs[0].rank = inputs[0].rank
    for i in range(inputs[0].rank):
        outputs[0].shape[i] = inputs[0].shape[i]
    return 0


cdef int tile(
    asc_context* context, const asc_tensor* inputs, int32_t input_count, const asc_tensor* outputs, void** tiling
) noexcept nogil:
    cdef Tiling* made = <Tiling*>malloc(sizeof(Tiling))
    if made == NULL:
        return context.fail(context, b"out of memory")
    made.count = 1
    for i in range(inputs[0].rank):
        made.count *= inputs[0].shape[i]
    made.sharpness = <float>context.attribute_float(context, b"sharpness", 1.0)
    tiling[0] = made
    return 0


cdef void free_tiling(void* tiling) noexcept nogil:
    free(tiling)


cdef int launch(
    const void* tiling, const asc_tensor* inputs, int32_t input_count, const asc_tensor* outputs, char* error
) noexcept nogil:
    cdef const Tiling* made = <const Tiling*>tiling
    cdef const float* x = <const float*>inputs[0].data
    cdef float* y = <float*>outputs[0].data
    cdef int64_t i
    for i in range(made.count):
        y[i] = expf(-made.sharpness * x[i] * x[i])
    return 0


cdef asc_operator bump
bump.version = ASC_OPERATOR_VERSION
bump.size = sizeof(asc_operator)
bump.name = b"gauss::bump"
bump.min_inputs = bump.max_inputs = bump.outputs = 1
bump.infer_type = NULL  # the result has the type of the input
bump.infer_shape = infer_shape
bump.tiling = tile
bump.free_tiling = free_tiling
bump.launch = launch


def operators():
    """The capsules of this package's operators; ascendsched calls this when a model needs the domain."""
    return [PyCapsule_New(&bump, ASC_OPERATOR_CAPSULE, NULL)]
