/* SPDX-License-Identifier: BSD-3-Clause */
/* Parameters (scales, zero points, smooth scales) of any dtype and stride, as the binary32 runs that kernels take. */
#ifndef NPUQ_PARAMS_H
#define NPUQ_PARAMS_H

#include "memory_plan.h"

/* A run of parameters. Each may serve several columns. If data is null, they are absent. */
typedef struct npuq_params {
    const char *data;
    ptrdiff_t stride;      /* bytes from one to the next */
    unsigned type;         /* npuq_type */
    unsigned repeat;       /* columns that each serves, 1..NPUQ_MAX_REPEAT */
    unsigned phase_in_run; /* columns that the first has served already */
} npuq_params;

enum { NPUQ_MAX_REPEAT = 64 };
_Static_assert(NPUQ_MAX_REPEAT <= UINT8_MAX, "repeat and phase_in_run hold it");

static inline npuq_params npuq_skip_params(const npuq_params *params, size_t i)
{
    npuq_params from = *params;

    if (from.data && i > 0) {
        const size_t columns = from.phase_in_run + i;

        from.data += (ptrdiff_t)(columns / from.repeat) * from.stride;
        from.phase_in_run = (unsigned)(columns % from.repeat);
    }
    return from;
}

/* Whether the run can be read where it lies. */
static inline bool npuq_params_are_ready(const npuq_params *params)
{
    return params->data && params->type == NPUQ_TYPE_FLOAT32 && params->stride == (ptrdiff_t)sizeof(float) &&
           params->repeat == 1;
}

static inline bool npuq_needs_conversion(const npuq_params *params)
{
    return params->data && !npuq_params_are_ready(params);
}

/* Of parameters that are not absent. Takes a copy: a variable without an address stays in registers. */
const float *npuq_convert_any_params(const npuq_row_kernels *kernels, npuq_params params, size_t n, float *buffer);

/* The parameters of the first n columns as contiguous binary32: in place, or converted into buffer. It has room for one
 * if n is 1, else for n + NPUQ_MAX_REPEAT. Null where they are absent. */
static inline NPUQ_INLINED const float *npuq_convert_params(const npuq_row_kernels *kernels, const npuq_params *params,
                                                            size_t n, float *buffer)
{
    const bool is_ready = !params->data || /* else its type is not set */
                          (n == 1 && params->type == NPUQ_TYPE_FLOAT32) || npuq_params_are_ready(params);

    return is_ready ? (const float *)(const void *)params->data : npuq_convert_any_params(kernels, *params, n, buffer);
}

#endif
