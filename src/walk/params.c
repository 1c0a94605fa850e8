/* SPDX-License-Identifier: BSD-3-Clause */
#include "params.h"

#include "../view/view.h"

#include "../ref/npuq_ref_element.h"

npuq_params npuq_params_from(const npuq_params *params, size_t i)
{
    npuq_params from = *params;

    if (from.data && i > 0) {
        const size_t columns = from.used + i;
        from.data += (ptrdiff_t)(columns / from.repeat) * from.step;
        from.used = columns % from.repeat;
    }
    return from;
}

bool npuq_params_ready(const npuq_params *params)
{
    return params->data && params->dtype == NPUQ_FLOAT32 && params->step == (ptrdiff_t)sizeof(float) &&
           params->repeat == 1;
}

/* Writes value for all the columns that it serves, and beyond: whole vectors cost less than counting, and what is too
 * much will be written over by the next. */
static void spread(float *to, float value, size_t columns)
{
    for (size_t i = 0; i < columns; i += 16) {
        for (size_t k = 0; k < 16; k++) {
            to[i + k] = value;
        }
    }
}

/* How the kernels call a dtype, NPUQ_P_TYPES if they do not widen it. */
static npuq_p_type widened_type(npuq_dtype dtype)
{
    switch (dtype) {
    case NPUQ_FLOAT16: return NPUQ_P_F16;
    case NPUQ_BFLOAT16: return NPUQ_P_BF16;
    case NPUQ_INT8: return NPUQ_P_I8;
    case NPUQ_UINT8: return NPUQ_P_U8;
    case NPUQ_INT32: return NPUQ_P_I32;
    default: return NPUQ_P_F32;
    }
}

const float *npuq_params_f32(const npuq_row_kernels *kernels, const npuq_params *params, size_t n, float *buffer)
{
    if (npuq_params_ready(params)) {
        return (const float *)(const void *)params->data;
    }
    if (!params->data) {
        for (size_t i = 0; i < n; i++) {
            buffer[i] = 0.0f;
        }
        return buffer;
    }

    const char *p = params->data;
    const npuq_p_type type = widened_type(params->dtype);

    if (type < NPUQ_P_WIDENED && params->repeat == 1 && params->step == (ptrdiff_t)npuq_dtype_size(params->dtype)) {
        kernels->widen[type](p, buffer, n);
        return buffer;
    }

#define CONVERT(TYPE, TO_FLOAT)                                                                                        \
    if (params->repeat == 1) {                                                                                         \
        for (size_t i = 0; i < n; i++) {                                                                               \
            buffer[i] = TO_FLOAT(*(const TYPE *)(const void *)(p + (ptrdiff_t)i * params->step));                      \
        }                                                                                                              \
    } else {                                                                                                           \
        size_t i = 0;                                                                                                  \
        for (size_t columns = params->repeat - params->used; i < n; columns = params->repeat) {                        \
            spread(buffer + i, TO_FLOAT(*(const TYPE *)(const void *)p), columns);                                     \
            i += columns;                                                                                              \
            p += params->step;                                                                                         \
        }                                                                                                              \
    }                                                                                                                  \
    break

    switch (params->dtype) {
    case NPUQ_FLOAT32: CONVERT(float, );
    case NPUQ_FLOAT16: CONVERT(uint16_t, npuq_ref_float16);
    case NPUQ_BFLOAT16: CONVERT(uint16_t, npuq_ref_bfloat16);
    case NPUQ_INT8: CONVERT(int8_t, );
    case NPUQ_UINT8: CONVERT(uint8_t, );
    case NPUQ_INT32: CONVERT(int32_t, npuq_ref_int32);
    case NPUQ_INT64:
    case NPUQ_UINT64:
    case NPUQ_QUINT4X2: break; /* no parameter is of these types */
    }
#undef CONVERT
    return buffer;
}
