/* SPDX-License-Identifier: BSD-3-Clause */
#include "params.h"

#include "../element.h"

static inline NPUQ_INLINED float read_param(npuq_type type, const char *from)
{
    const void *p = from;

    if (type == NPUQ_TYPE_FLOAT32) { /* a branch takes less time than a jump by table */
        return *(const float *)p;
    }
    switch (type) {
    case NPUQ_TYPE_FLOAT16: return npuq_widen_float16(*(const uint16_t *)p);
    case NPUQ_TYPE_BFLOAT16: return npuq_widen_bfloat16(*(const uint16_t *)p);
    case NPUQ_TYPE_INT8: return *(const int8_t *)p;
    case NPUQ_TYPE_UINT8: return *(const uint8_t *)p;
    case NPUQ_TYPE_INT32: return (float)*(const int32_t *)p;
    default: break; /* words are unpacked */
    }
    assert(false);
    __builtin_unreachable();
}

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
    const npuq_type type = (npuq_type)params.type;
    const char *p = params.data;
    size_t columns = params.repeat - params.phase_in_run;

    assert(p && params.repeat > 0 && params.repeat <= NPUQ_MAX_REPEAT && params.phase_in_run < params.repeat);
    if (params.repeat > 1 && n > 1) {
        for (size_t i = 0; i < n; columns = params.repeat) {
            spread(buffer + i, read_param(type, p), columns);
            i += columns;
            p += params.stride;
        }
    } else if (n > 1 && type != NPUQ_TYPE_FLOAT32 && params.stride == (ptrdiff_t)npuq_word_of(type).size) {
        npuq_widen_kernel(kernels, type)(p, buffer, n);
    } else {
        for (size_t i = 0; i < n; i++) {
            buffer[i] = read_param(type, p + (ptrdiff_t)i * params.stride);
        }
    }
    return buffer;
}
