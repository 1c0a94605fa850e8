/* SPDX-License-Identifier: BSD-3-Clause */
#include "params.h"

#include "ref/npuq_ref_element.h"

npuq_params npuq_params_from(npuq_params params, size_t i)
{
    if (params.data) {
        params.data += (ptrdiff_t)i * params.step;
    }
    return params;
}

bool npuq_params_ready(const npuq_params *params)
{
    return params->data && params->dtype == NPUQ_FLOAT32 && params->step == (ptrdiff_t)sizeof(float);
}

const float *npuq_params_f32(const npuq_params *params, size_t n, float *buffer)
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

#define CONVERT(LOAD)                                                                                                  \
    for (size_t i = 0; i < n; i++) {                                                                                   \
        const void *p = params->data + (ptrdiff_t)i * params->step;                                                    \
        buffer[i] = LOAD;                                                                                              \
    }                                                                                                                  \
    break

    switch (params->dtype) {
    case NPUQ_FLOAT32: CONVERT(*(const float *)p);
    case NPUQ_FLOAT16: CONVERT(npuq_ref_float16(*(const uint16_t *)p));
    case NPUQ_BFLOAT16: CONVERT(npuq_ref_bfloat16(*(const uint16_t *)p));
    case NPUQ_INT8: CONVERT((float)*(const int8_t *)p);
    case NPUQ_UINT8: CONVERT((float)*(const uint8_t *)p);
    case NPUQ_INT32: CONVERT(npuq_ref_int32(*(const int32_t *)p));
    case NPUQ_INT64:
    case NPUQ_UINT64:
    case NPUQ_QUINT4X2: break; /* no parameter is of these types */
    }
#undef CONVERT
    return buffer;
}
