# Operators in Cython: `from ascendsched_operator cimport asc_operator, asc_tensor, asc_context`. See the C header.
from libc.stdint cimport int32_t, int64_t, uint32_t

cdef extern from "ascendsched/operator.h" nogil:
    enum:
        ASC_OPERATOR_VERSION
        ASC_MAX_RANK
        ASC_MAX_OPERANDS
        ASC_ERROR_BYTES
        ASC_FLOAT32
        ASC_UINT8
        ASC_INT8
        ASC_UINT16
        ASC_INT16
        ASC_INT32
        ASC_INT64
        ASC_BOOL
        ASC_FLOAT16
        ASC_FLOAT64
        ASC_UINT32
        ASC_UINT64
        ASC_BFLOAT16
    const char* ASC_OPERATOR_CAPSULE

    ctypedef struct asc_tensor:
        void* data
        int32_t type
        int32_t rank
        int64_t shape[8]

    ctypedef struct asc_context:
        const void* node
        int64_t (*attribute_int)(const asc_context* context, const char* name, int64_t fallback) noexcept nogil
        double (*attribute_float)(const asc_context* context, const char* name, double fallback) noexcept nogil
        int (*fail)(asc_context* context, const char* why) noexcept nogil
        char error[256]
        int32_t (*attribute_ints)(
            const asc_context* context, const char* name, int64_t* values, int32_t capacity
        ) noexcept nogil
        const char* (*attribute_text)(const asc_context* context, const char* name, const char* fallback) noexcept nogil

    ctypedef struct asc_operator:
        uint32_t version
        uint32_t size
        const char* name
        int32_t min_inputs
        int32_t max_inputs
        int32_t outputs
        int32_t (*infer_type)(const int32_t* input_types, int32_t input_count, int32_t output) noexcept nogil
        int (*infer_shape)(
            asc_context* context, const asc_tensor* inputs, int32_t input_count, asc_tensor* outputs
        ) noexcept nogil
        int (*tiling)(
            asc_context* context, const asc_tensor* inputs, int32_t input_count, const asc_tensor* outputs, void** tiling
        ) noexcept nogil
        void (*free_tiling)(void* tiling) noexcept nogil
        int (*launch)(
            const void* tiling, const asc_tensor* inputs, int32_t input_count, const asc_tensor* outputs, char* error
        ) noexcept nogil
