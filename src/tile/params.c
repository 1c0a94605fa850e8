/* SPDX-License-Identifier: BSD-3-Clause */
#include "params.h"

#include "../element.h"

/* Writes value for all its columns, and beyond: whole vectors cost less than counting, and the next value overwrites
 * the excess. */
static void spread(float *to, float value, size_t columns)
{
    for (size_t i = 0; i < columns; i += 16) {
        for (size_t k = 0; k < 16; k++) {
            to[i + k] = value;
        }
    }
}

const float *npuq_convert_any_params(const npuq_row_kernels *kernels, npuq_params params, size_t n, float *buffer)
{
    assert(params.repeat > 0 && params.repeat <= NPUQ_MAX_REPEAT && params.phase_in_run < params.repeat);
    if (!params.data) {
        for (size_t i = 0; i < n; i++) {
            buffer[i] = 0.0f;
        }
        return buffer;
    }

    const char *p = params.data;

#define CONVERT(TYPE, TO_FLOAT)                                                                                        \
    if (params.repeat == 1 && n > 1 && params.type != NPUQ_TYPE_FLOAT32 && params.stride == (ptrdiff_t)sizeof(TYPE)) { \
        kernels->widen[params.type](p, buffer, n);                                                                     \
    } else if (params.repeat == 1) {                                                                                   \
        for (size_t i = 0; i < n; i++) {                                                                               \
            buffer[i] = TO_FLOAT(*(const TYPE *)(const void *)(p + (ptrdiff_t)i * params.stride));                     \
        }                                                                                                              \
    } else {                                                                                                           \
        size_t i = 0;                                                                                                  \
        for (size_t columns = params.repeat - params.phase_in_run; i < n; columns = params.repeat) {                   \
            spread(buffer + i, TO_FLOAT(*(const TYPE *)(const void *)p), columns);                                     \
            i += columns;                                                                                              \
            p += params.stride;                                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    break

    switch ((npuq_type)params.type) {
    case NPUQ_TYPE_FLOAT32: CONVERT(float, );
    case NPUQ_TYPE_FLOAT16: CONVERT(uint16_t, npuq_widen_float16);
    case NPUQ_TYPE_BFLOAT16: CONVERT(uint16_t, npuq_widen_bfloat16);
    case NPUQ_TYPE_INT8: CONVERT(int8_t, );
    case NPUQ_TYPE_UINT8: CONVERT(uint8_t, );
    case NPUQ_TYPE_INT32: CONVERT(int32_t, (float));
    case NPUQ_TYPE_INT64:
    case NPUQ_TYPE_UINT64: /* words are unpacked */
    case NPUQ_TYPE_QUINT4X2: break;
    }
#undef CONVERT
    return buffer;
}
